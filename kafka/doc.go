// Package kafka reads topics of Kafka and writes to them, each delivery in one
// transaction.
//
// # The cluster
//
//	kafka.Topic("orders", codec.JSON[Order]())                 // SLUICE_KAFKA=host:9092
//	kafka.Topic("orders", codec.JSON[Order](), kafka.On(there)) // there := kafka.Connect(kafka.Brokers("host:9092"), …)
//
// Without a word about it, the cluster is the one that the environment names, by
// variables or by a file of Kafka's own (client.properties); see [FromEnvironment] and
// [FromFile]. [Connect] names one in the program, with [TLS] and a login.
// Neither addresses nor secrets are part of a job's version. A source that can't
// reach its cluster when a job starts gives up after 30 seconds, at once if the
// password or a certificate is wrong; one that is reading waits for it, however
// long, says so in the log, and goes on by itself.
//
// # Reading
//
//	job.From("orders", kafka.Topic("orders", codec.JSON[Order]()))
//	job.From("clicks", kafka.Pattern("clicks-.*", codec.JSON[Click](), kafka.Begin(kafka.Latest())))
//	job.From("users", kafka.Messages(kafka.Topic("users", codec.JSON[User]())))
//
// [Messages] gives records as they are, with key, headers, time and place, and with
// tombstones, whose value is null; without it a null value is a record that can't be
// decoded. A partition is named topic/number, as in "orders/3".
//
// What is read is what is committed: records of transactions that are open or were
// given up don't show. Lag is told against the end of what is decided.
//
// A new job begins where [Begin] says: with the oldest record, with what comes after
// its start, at a time, at given offsets, or where a group of consumers has read to,
// so that a job can take over from Spark, Flink or a plain consumer. Where that is
// is kept before the first record is read. From then on the job reads on from its
// own checkpoints alone, and partitions that come later are read from their
// beginning.
//
// # What is never done
//
// The place to read on from is never reset. A topic that was deleted and made anew
// is a [ReplacedError], one that is gone a [VanishedError]; records that retention
// took before they were read are a [LostError]; a log that lost records which had
// been read, by an unclean election of its leader, is a [CutError]. Each says what
// is missing, from where to where, and stops the job, when it starts as well as while
// it reads.
//
// A compacted topic loses records by design. A job reads what is left; but an epoch
// that is read again, by a recovery or a follower, may find less than it did at
// first.
//
// # The group
//
// For people and their tools, the cluster is told how far the job has read, as
// offsets of a group by the job's name ([Group], [NoGroup]) that never has members.
// The offsets' metadata holds the job's id. A group with members, with another job's
// offsets, or with offsets of some consumer that a new job didn't begin from, is a
// [GroupInUseError], so that nobody's offsets are overwritten.
//
// # Dead letters
//
//	job.DeadLetter("bad", kafka.Append("orders-bad", codec.JSON[sluice.DeadLetter]()).
//		Key(func(d sluice.DeadLetter) []byte { return fmt.Appendf(nil, "%s/%d", d.Partition, d.Offset) }))
//
// A sink of dead letters is one like any other: its records have a key if the program
// gives one, such as the bad record's place. A dead letter has the record's value
// (Bytes), as it was read, and the place, where its key and headers stand for as long
// as the topic keeps them; DeadLetter.Key is the key at the step that failed, in words.
// JSON has bytes as base64, a third more than they were, so that the topic's
// max.message.bytes should be half as large again as the input's: a dead letter that
// doesn't fit stops the job.
//
// # Permissions and versions
//
// A source needs Read on its topics and on its group ([PermissionError]). Brokers
// need to be 2.8 or later for topics to have ids, without which a topic that was made
// anew is found out only if it is shorter, which the log says at the start; from 3.1
// on, each fetch names the topic by its id. Older brokers than 2.1 have no leader
// epochs to tell a cut log by. A sink needs 4.0, unless [AllowOldBrokers] says
// otherwise. Brokers that lack what is needed are an [OldBrokersError] at the start.
package kafka
