// Package sluice runs stateful stream jobs that survive their own changes: each
// input is counted exactly once, whatever fails, and the state that a job keeps
// outlives its code, its types and its machine.
//
// # A job
//
//	type Order struct {
//		User  string
//		Cents int64
//	}
//
//	func (o Order) Paid() bool     { return o.Cents > 0 }
//	func (o Order) UserID() string { return o.User }
//
//	type Spend struct {
//		Orders int64
//		Cents  int64
//	}
//
//	func (s *Spend) Add(o Order) { s.Orders++; s.Cents += o.Cents }
//
//	var spend = sluice.NewState[string, Spend]("spend")
//
//	func job() *sluice.Job {
//		job := sluice.NewJob("spend")
//		job.From("orders", file.JSONLines[Order]("orders/*.jsonl", file.Follow())).
//			Filter(Order.Paid).
//			KeyBy(Order.UserID).
//			Fold(spend, (*Spend).Add).
//			To("spend_by_user", file.Upsert("out/spend", func(_ string, s Spend) Spend { return s }))
//		return job
//	}
//
//	func main() { sluice.Main(job()) }
//
// [Main] gives the binary its command line; [Job.Run] runs the job from a
// program of one's own. Package sluicetest runs it in a test.
//
// # Streams, keys, tables
//
// [Job.From] gives a [Stream] of records. Its methods add steps that have no
// state: [Stream.Map], [Stream.TryMap], [Stream.FlatMap], [Stream.Filter],
// [Stream.Merge]. [Stream.KeyBy] gives a [Keyed] stream, on which operators keep
// state for each key: [Keyed.Fold] and [Keyed.FoldKeep] give a [Table];
// [Keyed.Process] gives full control, with several states ([NewState],
// [NewMapState], [NewListState], and [NewSortedState] for the top N of each key)
// and several outputs ([NewOutput]). A table's
// rows go to sinks ([Table.To]), its changes are a stream ([Table.Changes]), and
// [Table.Regroup] keys its rows anew. A stream ends with [Stream.To] or
// [Stream.Discard].
//
// Whatever has a memory has a name: sources, states, sinks. An operator is
// called by its first state. Names are for good; functions and types may be
// renamed and moved as one likes.
//
// # Epochs
//
// A job works in epochs, of a second by default. An epoch's inputs, in the order
// in which they were read, its changes to states, and its outputs are committed
// as one object in the checkpoint store, the manifest; or they never happened.
// Outputs are delivered after that, each once: a sink remembers the last delivery
// together with its rows. Exactly once holds for each sink by itself.
//
// An epoch is a function of the state before it, its inputs in their order, and
// its clock, which stands still ([Context.Now]). [Job.Replay] runs it again and
// compares. So the functions of a job must be pure.
//
// # Time
//
// [Stream.EventTime] and [Stream.SourceTime] give records the time of what they tell
// of. How far that has come is the watermark, the least of the source's partitions; it
// moves at the ends of the batches that were read, in their recorded order, so that a
// replay has the same late records. [Keyed.Window] puts records into windows
// ([Tumbling], [Hopping], [Session], [Days], [WindowsBy]), which are folded
// ([Windowed.Fold]): [WindowTable.Results] has what each has come to, once,
// [WindowTable.Firings] what it comes to on the way, and the table that it is has the
// changes with each epoch. What comes too late goes to [Windowed.Late]; a record is in
// all of its windows, or in none. Where one key has many records, [MergeAhead] folds
// them before they are sent to it. In a Process,
// [Setup.OnTimer] and [Setup.OnClock] give each key timers.
//
// # State
//
// The schema of a state is derived from its Go type and stored with it, in Avro
// files that anyone can read. A newer build may add fields, reorder or widen
// them, make them nullable, or give them other names with an alias; what it
// can't carry over is refused, with every difference, before a record is read.
// What would drop data needs consent by name ([Options.Drop]). Package schema
// has the details.
//
// Functions carry over what Avro's rules don't. [State.Migrate] takes a chain of
// them ([Migrate], [Migration.Then]) from older types of the values to this one;
// [State.MigrateKeys] gives entries other keys; [State.TakesOver] begins a state
// with what others have stored: one that is renamed, a part of one that is split,
// or several that are put together by [State.Merge]. [State.Meaning] says that
// values of the same type mean something else now, and [Keyed.Meaning] that keys
// do. Map and list states have the same methods. A function that fails at an
// entry stops the start, with nothing changed, unless [Options.SetAside] lets such
// entries go. The command plan tells all of this before anything is stopped, and
// tries it on stored entries.
//
// A new job can begin with what another system knew: [Job.Import], or the command
// import, makes its first epoch of files and of places in its sources. Rows that
// are not a state's own entries are mapped by a function ([State.Import]).
//
// # Upgrading
//
// [Job.Run] with another build goes on where the job stood. [Job.Upgrade] takes over
// from one that runs, without a pause: the new build begins a branch, with the state
// carried over, follows what the old one does, and compares the outputs of both; at
// the cut it ends the live branch, and is live itself. Nothing is lost and nothing
// repeated, and the run of the old build ends with a [SupersededError]. [Upgrade]
// holds what must be so before the cut: equal outputs, a time for which it has kept
// up, a function's word. [Job.Rollback] goes back in the same way, by a branch that
// begins where the old build was ended. [Options.Rewrite] says what becomes of rows
// that the other build has written.
//
// # Errors
//
// A record that can't be decoded, or on which a function fails or panics, stops
// the job with a [RecordError] that says where it stands; or it goes to the sink
// of [Job.DeadLetter], and nothing that it has done elsewhere stays.
package sluice
