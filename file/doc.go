// Package file reads and writes files: JSON lines, CSV, and lines of any other
// codec.
//
// # Reading
//
//	job.From("orders", file.JSONLines[Order]("data/orders-*.jsonl"))
//	job.From("clicks", file.CSV[Click]("data/clicks.csv.gz"))
//	job.From("log", file.Lines("log/app.log", codec.String(), file.Follow()))
//
// A pattern is a file's name, or has the wildcards of [path/filepath.Match] in
// any of its parts; "*" and "?" at a part's beginning pass over hidden names.
// Each file is a partition, named by its path below the pattern's fixed folder
// ("a/b*/c.csv" names "b1/c.csv"), and the offset of a record is that of its
// first byte. Files whose name ends in ".gz" are unpacked; their offsets are
// those of the unpacked bytes.
//
// Files are read to their end as it is then, a last line without a newline
// included; with [Follow] they are read on as they grow, and new files that
// fit the pattern are taken up.
//
// An offset carries the fingerprint of what was read before it, "length:hash":
// the number of the file's first bytes (unpacked ones; 4096, or all up to the
// offset where these are fewer) and their sha256 in hexadecimal digits. A file
// may grow, move together with its folder or be packed anew; one that has
// become shorter than what was read of it or that begins otherwise is a
// [ChangedError].
//
// # Writing
//
//	stream.To("alerts", file.Append[Alert]("out/alerts"))
//	table.To("spend", file.Upsert("out/spend", spendRow, file.AsCSV()))
//
// A sink is a folder of its own. Each delivery is one file, named by its
// position in 20 digits, so that the files in the order of their names are the
// output, each row once:
//
//	out/spend/00000000000000000007.csv
//	out/spend/00000000000000000008.csv
//	out/spend/.sluice/record.json                 whose folder this is
//	out/spend/.sluice/00000000000000000008.json   what was delivered last
//
// A part of a large delivery has its number behind that of the position before
// it: 00000000000000000008_00001.csv. A delivery without rows leaves no file.
// Files appear under their name whole and durable, or not at all, and never
// change. Tasks other than 0.0 write to a folder below the sink's, named after
// the task.
//
// A stream's line is its row as a JSON object. A table's line is
//
//	{"op":"put","key":"ann","row":{"Orders":2}}
//	{"op":"delete","key":"bob"}
//
// and in CSV the columns are op, key (or key.Field for each field of a struct),
// and the row's fields. A nil pointer is an empty cell, an empty text is "".
//
// Who consumes the files may read them as they come, in the order of their
// names. Who takes files away must not take one that was not read, must
// remember the highest name taken and ignore lower ones: a deliverer that was
// suspended for long may put back what was taken, under the same name and with
// the same bytes. The folder .sluice stays.
package file
