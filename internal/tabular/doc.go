// Package tabular writes rows to files and reads them back, as Avro object
// container files, JSON lines, CSV or Parquet. A row is a record, encoded as Avro;
// [Layout] says what it consists of and how its parts are called in a file.
//
// [Write] spreads the rendering over the processors, and keeps the rows' order.
// [Open] finds a row's parts by their names, whatever their order, and widens
// numbers as Avro's rules have it. Nothing here needs more memory than a few
// chunks of rows; Parquet needs that of a row group.
package tabular
