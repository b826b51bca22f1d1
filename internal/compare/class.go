package compare

import "github.com/sluicestream/sluice/schema"

// class is what a value is, whatever its type: values of one class can be equal.
type class uint8

const (
	nothing  class = iota // null
	truth                 // booleans
	number                // integers, floating-point numbers, decimals
	text                  // strings, enums, UUIDs
	raw                   // bytes
	moment                // timestamps, dates
	duration              // durations, times of day
	list
	dictionary
	record
	union
)

// scalar tells whether a value holds no others.
func (c class) scalar() bool { return c < list }

// unit tells how a moment or a duration is counted: how many there are in a second.
type unit int64

const (
	days   unit = -86400 // a day has so many seconds
	millis unit = 1e3
	micros unit = 1e6
	nanos  unit = 1e9
)

// counted is how a moment or a duration is an integer.
type counted struct {
	class class
	unit  unit
}

// units are the logical types of moments and durations. A schema has them only where
// they belong: dates are ints, so that their seconds are an int64.
var units = map[string]counted{
	"date":                   {moment, days},
	"timestamp-millis":       {moment, millis},
	schema.LogicalTimestamp:  {moment, micros},
	"timestamp-nanos":        {moment, nanos},
	"local-timestamp-millis": {moment, millis},
	"local-timestamp-micros": {moment, micros},
	"local-timestamp-nanos":  {moment, nanos},
	"time-millis":            {duration, millis},
	"time-micros":            {duration, micros},
	schema.LogicalDuration:   {duration, nanos},
}

// classOf returns the class of a schema's values.
func classOf(s *schema.Schema) class {
	switch s.Kind() {
	case schema.KindNull:
		return nothing
	case schema.KindBoolean:
		return truth
	case schema.KindInt, schema.KindLong:
		if u, ok := units[s.Logical()]; ok {
			return u.class
		}
		return number
	case schema.KindFloat, schema.KindDouble:
		return number
	case schema.KindString, schema.KindEnum:
		return text
	case schema.KindBytes, schema.KindFixed:
		return classOfBytes(s)
	case schema.KindArray:
		if s.Logical() == schema.LogicalMap && len(s.Element().Fields()) == 2 {
			return dictionary
		}
		return list
	case schema.KindMap:
		return dictionary
	case schema.KindUnion:
		return union
	}
	return record
}

func classOfBytes(s *schema.Schema) class {
	switch {
	case s.Logical() == schema.LogicalDecimal, s.Logical() == schema.LogicalUint64 && s.Size() == 8:
		return number
	case isUUID(s):
		return text
	}
	return raw
}

const uuidBytes = 16

// isUUID tells whether a schema's values are the bytes of a UUID.
func isUUID(s *schema.Schema) bool {
	return s.Kind() == schema.KindFixed && s.Logical() == "uuid" && s.Size() == uuidBytes
}
