package cutproxy

// Direction is one of the two ways that bytes go.
type Direction int

// The directions.
const (
	ToServer Direction = iota
	ToClient
)

// String is the direction in words.
func (d Direction) String() string {
	if d == ToClient {
		return "to client"
	}
	return "to server"
}

// Act is what is done to a connection.
type Act int

// What can be done to a connection.
const (
	Pass  Act = iota // nothing
	Cut              // both ends see a reset, after the bytes before it have arrived
	Stall            // no further byte goes this way until Release
)

// Fate is what becomes of a connection. The zero value forwards everything.
type Fate struct {
	// Refuse resets the connection before the server hears of it.
	Refuse bool
	// Act is done to the direction Way once exactly After bytes have gone it.
	Act   Act
	Way   Direction
	After int64
	// When is asked about each message, in the order of its direction, when its
	// head has come and before any byte of it goes on; the two directions may ask
	// at once, and while an act is still to come nobody is asked. It returns what to do, and after how many bytes of the message; a
	// number that is not below the message's size acts behind it. Nil does nothing.
	When func(Message) (Act, int64)
}

// CutAfter is the fate of being cut after n bytes of a direction.
func CutAfter(way Direction, n int64) Fate { return Fate{Act: Cut, Way: way, After: n} }

// StallAfter is the fate of standing still after n bytes of a direction.
func StallAfter(way Direction, n int64) Fate { return Fate{Act: Stall, Way: way, After: n} }
