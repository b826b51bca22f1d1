// Package embedded is a Kafka broker inside a Go process, for trying things out
// and for tests, where no Java is at hand:
//
//	b, err := embedded.Start(embedded.Options{Topics: []embedded.Topic{{Name: "orders", Partitions: 4}}})
//	…
//	defer b.Close()
//	seeds := b.Addr()
//
// It is franz-go's kfake, which speaks Kafka's protocol over TCP, with
// transactions, consumer groups, topic ids, leader epochs, TLS and SASL. With a
// folder it keeps topics, records, groups' offsets and producers' ids there.
//
// # What it keeps
//
// After Close everything is there at the next Start. After a kill of the process
// whatever was acknowledged is there too: it was written, though not synced. With
// [Options.Sync] records and groups' offsets outlast a power cut as well; topics,
// users and settings are not synced one by one. A transaction that was open at a
// kill is aborted.
//
// # What it does otherwise than the real one
//
//   - A transaction that is just being committed at a kill is committed in all of
//     its partitions or in none, as with the real one; but the offsets of a group
//     that are a part of it may be missing, and who tries the commit again after the
//     next start is told that there is no such transaction.
//   - Brokers are addresses of one process: there are no copies, nobody falls out
//     of the in-sync set, and min.insync.replicas counts for nothing. They stop
//     together.
//   - A start does not raise the partitions' leader epochs; [Broker.MoveLeader]
//     does. After a kill the epoch is that of the last record.
//   - Compaction and retention happen once an hour, and at [Broker.Compact]. Unless
//     a topic or [Options.Settings] has retention set, nothing is removed by age.
//     A compaction covers all of a partition but its newest batch, and moves the
//     log's start to the first record that is left, where the real one leaves it.
//   - The log's start after DeleteRecords may come back, lower, after a kill.
//   - Quotas are kept and not enforced; nothing is throttled. Timestamps are not
//     checked. A record alone is never refused, only its batch.
//   - Users authenticate by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512; there is no
//     OAUTHBEARER, no Kerberos, no delegation token, and no listener of another
//     kind beside the first. What users may do is not restricted. Who gives a wrong
//     password is not told so: the connection is closed.
//   - There are no internal topics: offsets and transactions can't be consumed.
//   - A client may make topics of any name and with any settings, of which few do
//     anything; [Broker.CreateTopic] takes those alone.
//   - A topic that nobody has created is not created by asking for it.
package embedded
