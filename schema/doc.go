// Package schema derives Avro schemas from Go types, writes and reads values of
// these types as Avro, and says how one schema differs from another.
//
// # Types
//
// [Of] derives the schema of a type, under a name of its own: renaming or moving
// the Go type changes nothing.
//
//	spends, err := schema.Of[Spend]("spend")
//	data, err := spends.Append(nil, &spend)
//	rest, err := spends.Decode(data, &spend)
//
// What a Go type becomes:
//
//	bool                          boolean
//	int8, int16, int32            int, with the width as a property
//	int, int64                    long
//	uint8, uint16; uint32         int; long, with width and sign as properties
//	uint, uint64                  fixed(8), big-endian
//	float32, float64              float, double; every NaN is one
//	string                        string, its bytes as they are
//	a string with Symbols         enum
//	[]byte, [N]byte               bytes, fixed
//	[]T, [N]T                     array
//	map[string]T                  map, ordered by key
//	map[K]T                       array of records {key, value}, ordered by key
//	*T                            ["null", T]
//	struct                        record; embedded structs are part of it
//	time.Time, Instant            timestamp-micros
//	time.Duration                 long of nanoseconds
//	*big.Rat, big.Rat             decimal (nullable, or not), by its tag
//
// A tag gives a field its name, earlier names, and a default for data that was
// written without it, which is otherwise Go's zero value. The default comes last
// and goes to the end of the tag:
//
//	`avro:"name,alias=old,alias=older,default=5"`
//	`avro:"price,precision=12,scale=2"`
//	`avro:"-"`
//
// An enum is a string type with the method Symbols() []string. The empty string
// is an error like any other that is none of them, unless Symbols lists it too;
// it is written "_" then. A field that wasn't stored reads as the empty string
// if that is a symbol, else as the first.
// A method DefaultSymbol() string names the symbol that those are read as which
// the type doesn't know; without one they are an error.
//
// The error of [Of] holds everything that has no form, by path: unexported
// fields (they would be lost), interfaces, functions, channels, pointers to
// pointers.
//
// # One form
//
// Equal values have equal encodings, whatever the order of a map, the NaN or
// the time's zone. What is empty is written as nil is: an empty slice is read
// back as nil, an empty or nil map as an empty one, so that what wrote to a map
// before it was stored can do so afterwards.
//
// # Keys
//
// [KeyOf] derives what can be a key: what is equal exactly if its encoding is.
// [Comparer] orders encodings as Avro does, and [Skipper] tells where one ends.
//
// # Change
//
// [Type.Reader] reads what was written with another schema, as far as Avro's
// rules go; where they don't, the error lists each difference by path.
// [Differences] lists them all, also those that resolve. [Type.Narrowing] reads,
// where it is allowed, also what may not fit.
//
// What others write is read as well:
//
//	timestamp-millis, -micros, -nanos     time.Time, Instant
//	local-timestamp-...                   the same, as if in UTC
//	date                                  the same, at midnight UTC; or an integer of days
//	time-millis, time-micros              time.Duration since midnight; or an integer
//	decimal, bytes or fixed               big.Rat that has no fewer digits
//	uuid, a string or fixed(16)           string, [16]byte
//	a union of several types              what can hold one of them, or a pointer to it
//
// Where a value can't be carried over, reading it is a [*ValueError]: a branch
// that the Go type can't hold, a moment too far away, an Instant of nanoseconds.
// Names of types make no difference, so neither do their aliases.
//
// # Without types
//
// [JSON] and [Text] turn encoded values into text by their schema alone.
package schema
