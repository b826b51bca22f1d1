package golden

import (
	"fmt"
	"strconv"
)

// What the job golden reads: before its first run, its second, after it was asked to
// forget the meter m3, by its second version, and by that in its last run.
var input = [][]string{
	{at("m1", hall, 3), at("m2", cellar, 4), at("m3", hall, 5)},
	{at("m1", attic, 7), `{"Meter":"m1","Room":{"Floor":2,"Name":"attic"},"Value":8,"Bad":true}`},
	{at("m2", hall, 9)},
	{at("m4", attic, 10)},
	{at("m5", hall, 11)},
}

// next is what it reads when the checkpoint is gone on from.
var next = []string{at("m1", hall, 20)}

// The rooms.
const (
	hall   = `{"Floor":1,"Name":"hall"}`
	cellar = `{"Floor":-1,"Name":"cellar"}`
	attic  = `{"Floor":2,"Name":"attic"}`
)

func at(meter, room string, value int) string {
	return fmt.Sprintf(`{"Meter":%q,"Room":%s,"Value":%d}`, meter, room, value)
}

// held is what states hold, by hand.
type held map[string]map[string]string

var (
	// When the savepoint was made.
	atSavepoint = held{
		"totals":  {hall: sum(2, 8), cellar: sum(1, 4), attic: sum(1, 7)},
		"values":  {`"m1" 0`: "3", `"m1" 1`: "7", `"m2" 0`: "4", `"m3" 0`: "5"},
		"by_room": {`"m1" ` + hall: sum(1, 3), `"m1" ` + attic: sum(1, 7), `"m2" ` + cellar: sum(1, 4), `"m3" ` + hall: sum(1, 5)},
	}
	// At the end.
	atEnd = held{
		"totals":  {hall: averaged(4, 28, "7"), cellar: averaged(1, 4, "4"), attic: averaged(2, 17, "8.5")},
		"values":  {`"m1" 0`: "3", `"m1" 1`: "7", `"m2" 0`: "4", `"m2" 1`: "9", `"m4" 0`: "10", `"m5" 0`: "11"},
		"by_room": {`"m1" ` + hall: sum(1, 3), `"m1" ` + attic: sum(1, 7), `"m2" ` + cellar: sum(1, 4), `"m2" ` + hall: sum(1, 9), `"m4" ` + attic: sum(1, 10), `"m5" ` + hall: sum(1, 11)},
		"parity":  {"0": sum(1, 10), "1": sum(1, 11)},
		"latest":  {`"m1"`: latestOf(7, list(hall, attic), 10), `"m2"`: latestOf(9, list(cellar, hall), 13), `"m4"`: latestOf(10, list(attic), 10), `"m5"`: latestOf(11, list(hall), 11)},
	}
	// Once the job has gone on.
	goneOn = held{
		"totals": {hall: averaged(5, 48, "9.6"), cellar: averaged(1, 4, "4"), attic: averaged(2, 17, "8.5")},
		"values": {`"m1" 0`: "3", `"m1" 1`: "7", `"m1" 2`: "20", `"m2" 0`: "4", `"m2" 1`: "9", `"m4" 0`: "10", `"m5" 0`: "11"},
		"parity": {"0": sum(2, 30), "1": sum(1, 11)},
		"latest": {`"m1"`: latestOf(20, list(hall, attic, hall), 30), `"m2"`: latestOf(9, list(cellar, hall), 13), `"m4"`: latestOf(10, list(attic), 10), `"m5"`: latestOf(11, list(hall), 11)},
	}
)

func sum(readings, sum int) string { return fmt.Sprintf(`{"Readings":%d,"Sum":%d}`, readings, sum) }

func averaged(readings, sum int, mean string) string {
	return fmt.Sprintf(`{"Readings":%d,"Sum":%d,"Mean":%s}`, readings, sum, mean)
}

func list(rooms ...string) string {
	text := "["
	for i, r := range rooms {
		if i > 0 {
			text += ","
		}
		text += r
	}
	return text + "]"
}

// latestOf is a meter's value of the state latest, by hand.
func latestOf(n int64, list string, sum int64) string {
	bits := strconv.FormatInt(n, 10)
	by := map[int64]struct{ decimal, bytes, fixed, quarter, half, wide, instant string }{
		7:  {"0.875", "Nw==", "AQIDBw==", "1.75", "3.5", "8070450532247928832", "000007"},
		9:  {"1.125", "OQ==", "AQIDCQ==", "2.25", "4.5", "10376293541461622784", "000009"},
		10: {"1.250", "MTA=", "AQIDCg==", "2.5", "5", "11529215046068469760", "00001"},
		11: {"1.375", "MTE=", "AQIDCw==", "2.75", "5.5", "12682136550675316736", "000011"},
		20: {"2.500", "MjA=", "AQIDFA==", "5", "10", "4611686018427387904", "00002"},
	}[n]
	return fmt.Sprintf(`{"Bool":%v,"Int8":%[2]s,"Int16":%[2]s,"Int32":%[2]s,"Int64":%[3]d,"Uint8":%[2]s,"Uint16":%[2]s,"Uint32":%[2]s,"Uint64":%[4]s,`+
		`"Float32":%[5]s,"Float64":%[6]s,"Text":"%[2]s","Mode":"on","Bytes":"%[7]s","Fixed":"%[8]s","List":%[9]s,"Pair":[%[2]s,-%[2]s],`+
		`"Map":{"%[2]s":%[2]s,"all":%[3]d},"Numbers":{"-%[2]s":"-%[2]s","%[2]s":"%[2]s"},"Pointer":"%[2]s","Time":"1970-01-01T00:00:%02[10]d.000001Z",`+
		`"Instant":"1970-01-01T00:00:00.%[11]sZ","Duration":"%[2]ss","Decimal":"%[12]s","renamed":%[2]s}`,
		n%2 == 0, bits, sum, by.wide, by.half, by.quarter, by.bytes, by.fixed, list, n, by.instant, by.decimal)
}
