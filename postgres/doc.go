// Package postgres writes to tables of PostgreSQL.
//
//	table.To("spend", postgres.Upsert("spend_by_user", spendRow))
//	stream.To("alerts", postgres.Insert[Alert]("reports.alerts"))
//	gone.To("forgotten", postgres.Delete[UserID]("users", postgres.Key("user_id")))
//
// [Upsert] keeps a table equal to a job's table, [Insert] appends a row for each
// record, [Delete] removes the rows whose keys a stream holds.
//
// # The database
//
// [Database] names it; without it the environment variable SLUICE_POSTGRES does,
// or PGHOST, PGDATABASE, PGUSER, PGPASSWORD and what else libpq knows. TLS is
// libpq's too (sslmode, sslrootcert, …). A pooler in between has to hand out
// sessions, not transactions: bounds on lost sessions are set for the session.
//
// A start needs the database: without it, it ends with a [*ConnectError]. Later,
// deliveries to a database that is down are tried again.
//
// # Columns
//
// The fields of the row's struct are the columns. Their names are the fields' in
// snake case, so that UserID is user_id; a tag gives another name, the type, and
// says which belong to the key:
//
//	type Spend struct {
//		User   string   `pg:"user_id,key"`
//		Cents  int64    `pg:",type=integer"`
//		Price  *big.Rat `avro:",precision=20,scale=4"`
//		Notes  []Note
//	}
//
// A key that is a struct has a column for each of its fields; any other is the
// column that is tagged, or that [Key] names. It is written from the key, never
// from the row, so that a key that is gone can be deleted. A field is left out
// by `avro:"-"`. What a Go type becomes, and which types a tag may choose
// instead:
//
//	bool                          boolean
//	int8, int16, uint8            smallint                   integer, bigint, numeric(p,s)
//	int32, uint16                 integer                    smallint, bigint, numeric(p,s)
//	int, int64, uint32            bigint                     smallint, integer, numeric(p,s)
//	uint, uint64                  numeric(20,0)              bigint, numeric(p,s)
//	float32                       real                       double precision
//	float64                       double precision
//	*big.Rat, big.Rat             numeric(precision,scale)   wider ones
//	string                        text                       varchar(n), uuid, json, jsonb
//	a string with Symbols         text                       varchar(n), an enum by its name
//	[]byte, [N]byte               bytea                      json, jsonb (slices only)
//	[16]byte                      uuid                       bytea
//	time.Time, sluice.Instant     timestamptz                timestamp, date (both in UTC), bigint (microseconds)
//	time.Duration                 interval                   bigint (nanoseconds)
//	[]T, [N]T of the above        array                      json, jsonb
//	structs, maps, other slices   jsonb                      json
//	*T                            T, or null
//
// A string or a slice of bytes that is kept as json or jsonb is JSON already.
//
// Nothing is cut to fit. A row with what its columns can't take is a bad record,
// by a [*ValueError]: the character NUL or what isn't UTF-8 in a text, a number
// that is too large for the type that a tag chose, a time before 4713 BC, parts
// of a microsecond in an interval, what is no JSON, a key of more than 2600
// bytes, which no index takes. What the table's own constraints and triggers
// refuse can't be known before: the log names the constraints at the start, and a
// delivery that meets one ends the job with a [*RejectedError], which names the
// row and the way out. Nothing is lost: the next start delivers it. What depends
// on other rows (references, unique columns, exclusions), or on a trigger that
// raises an exception, is tried again for 30 seconds before; so is a privilege that
// the user lacks, before it ends the job with a [*DeniedError], which names the grant.
//
// # The table
//
// At the start the table is compared with the row. Columns that it lacks are
// added, as ones that may be null: rows that are there, and those of an older
// build, have no value for them. [CreateTable] makes the whole table. Everything
// that would lose or reject rows is a [*ColumnError] that says how to mend it: a
// type that doesn't take every value, a column that is not null and that the
// rows lack or leave null, a generated column, no unique constraint on exactly
// the key's columns, a missing privilege, a view that takes no rows. Several of
// them are a [*RefusedError].
//
// An outbox holds the names and types of its columns, so that one that another
// build has frozen is delivered all the same: a column that the table lacks is
// added, and one that the outbox lacks is left as it is, or to its default in a
// new row.
//
// [View] keeps a view over the table of the version that is live, for readers.
//
// # Exactly once
//
// A delivery is one transaction. It locks the sink's record in the table
// sluice_delivery, in the schema of the table, sees whether the delivery has been
// applied, copies the rows into a temporary table, merges them, and moves the
// record. Whatever interrupts it, the next try finds in the record whether it
// came through. For each job, task and sink there is one record; it names the
// job, the target (the table with its schema), and the branch, epoch and manifest
// that were applied last. A second job that would write to the same table, or has
// the same name and sink, is refused.
//
// A process that is suspended in the middle holds the record's lock no longer
// than the server lets it: see [IdleTimeout], [StatementTimeout] and
// [LockTimeout]. A commit is on disk before it counts, whatever
// synchronous_commit says for the user.
package postgres
