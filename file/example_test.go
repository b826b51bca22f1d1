package file_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/file"
)

// inFolder makes a folder with one file, for an example.
func inFolder(name, content string) (path string, done func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		panic(err)
	}
	return path, func() { os.RemoveAll(dir) }
}

// printAll reads a source as a job does.
func printAll[T any](s connector.Source[T]) error {
	ctx := context.Background()
	r, err := s.Open(ctx, connector.Opening{Env: env.Real()})
	if err != nil {
		return err
	}
	defer r.Close()
	names, err := r.Partitions(ctx)
	if err != nil {
		return err
	}
	decode := s.NewDecoder()
	for _, name := range names {
		p, err := r.Partition(ctx, name, connector.Offset{})
		if err != nil {
			return err
		}
		for b := new(connector.Batch); ; {
			if err := p.Next(ctx, b, -1); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
			for i := range b.Records {
				var v T
				if err := decode(b, i, &v); err != nil {
					return fmt.Errorf("%s, byte %d: %w", name, b.Records[i].Offset, err)
				}
				fmt.Printf("%s, byte %d: %+v\n", name, b.Records[i].Offset, v)
			}
		}
		p.Close()
	}
	return nil
}

func ExampleJSONLines() {
	path, done := inFolder("orders.jsonl", `{"ID":"o-1","Cents":1299}
{"ID":"o-2","Cents":"12.99"}
`)
	defer done()
	type Order struct {
		ID    string
		Cents int64
	}
	fmt.Println(printAll(file.JSONLines[Order](path)))
	// Output:
	// orders.jsonl, byte 0: {ID:o-1 Cents:1299}
	// orders.jsonl, byte 26: field Cents: expected int64, found the string "12.99"
}

func ExampleCSV() {
	path, done := inFolder("clicks.csv", "user,page,ms\nann,\"/a,b\",12\nbob,/,NA\n")
	defer done()
	type Click struct {
		User string `csv:"user"`
		Page string `csv:"page"`
		Took int    `csv:"ms"`
	}
	pattern := filepath.Join(filepath.Dir(path), "*.csv")
	fmt.Println(printAll(file.CSV[Click](pattern, file.Null("NA"))))
	// Output:
	// clicks.csv, byte 13: {User:ann Page:/a,b Took:12}
	// clicks.csv, byte 27: field ms: the cell is empty; a pointer field reads it as nil
}

func ExampleLines() {
	path, done := inFolder("app.log", "started\n\nstopped\n")
	defer done()
	fmt.Println(printAll(file.Lines(path, codec.String())))
	// Output:
	// app.log, byte 0: started
	// app.log, byte 9: stopped
	// <nil>
}

func ExampleColumns() {
	path, done := inFolder("points.csv", "1;2\n3;4\n")
	defer done()
	type Point struct{ X, Y int }
	fmt.Println(printAll(file.CSV[Point](path, file.Columns("X", "Y"), file.Comma(';'))))
	// Output:
	// points.csv, byte 0: {X:1 Y:2}
	// points.csv, byte 4: {X:3 Y:4}
	// <nil>
}

func ExampleFollow() {
	// Every 50 ms the folder's logs are looked at for more lines, of at most
	// 64 KiB each. New logs are taken up as they appear.
	source := file.Lines("/var/log/app/*.log", codec.String(), file.Follow(), file.Poll(50*time.Millisecond), file.MaxLine(64<<10))
	fmt.Println(source.Describe().Target)
	// Output: /var/log/app/*.log
}

func ExampleAppend() {
	type Alert struct{ User, Text string }
	sink := file.Append[Alert]("out/alerts")
	rows, err := sink.Rows()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range rows.Schema.Fields() {
		fmt.Println(f.Name)
	}
	// Output:
	// User
	// Text
}

func ExampleUpsert() {
	type Spend struct{ Orders, Cents int64 }
	type Row struct {
		Orders int64
		Mean   float64
	}
	sink := file.Upsert("out/spend", func(user string, s Spend) Row {
		return Row{s.Orders, float64(s.Cents) / float64(s.Orders)}
	}, file.AsCSV())
	fmt.Println(sink.Describe().Connector, sink.Describe().Target)
	// Output: file.csv out/spend
}
