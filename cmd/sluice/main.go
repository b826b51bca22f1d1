// Command sluice looks into a checkpoint store: what jobs have committed, where
// they stand, and what is in their state. It needs no job's code. `sluice dev` is a
// Kafka broker for trying a job out.
//
//	sluice log spend
//	sluice status spend
//	sluice state read spend spend ann
//	sluice state export spend --format csv --to spend-csv
//	sluice dev --topic orders:4 --seed orders.jsonl --key user
package main

import (
	"os"

	"github.com/sluicestream/sluice/internal/cli"
	"github.com/sluicestream/sluice/internal/dev"
)

func main() { os.Exit(cli.RunSluice(os.Args[1:], dev.Command())) }
