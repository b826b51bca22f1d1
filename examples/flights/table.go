package main

import (
	"context"
	"encoding/json/v2"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// table is the job's output in PostgreSQL. It looks there by itself, without
// Sluice's connector.
type table struct{ url, name string }

func (t *table) String() string { return "table " + t.name }

// read reads the table. The column that the first version doesn't know isn't
// there yet, or is null in rows that only that has written: that reads as unknown.
func (t *table) read(ctx context.Context) (map[key]row, error) {
	c, err := pgx.Connect(ctx, t.url)
	if err != nil {
		return nil, err
	}
	defer c.Close(context.WithoutCancel(ctx))
	found, err := c.Query(ctx, "select row_to_json(t)::text from "+pgx.Identifier{t.name}.Sanitize()+" t")
	if err != nil {
		return nil, err
	}
	lines, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	rows := map[key]row{}
	for _, line := range lines {
		var r struct {
			Airport    string  `json:"airport"`
			Carrier    string  `json:"carrier"`
			Flights    int64   `json:"flights"`
			Cancelled  int64   `json:"cancelled"`
			OnTime     *int64  `json:"on_time"`
			MeanDelay  float64 `json:"mean_delay"`
			WorstDelay int64   `json:"worst_delay"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", t, err, line)
		}
		onTime := int64(unknown)
		if r.OnTime != nil {
			onTime = *r.OnTime
		}
		rows[key{r.Airport, r.Carrier}] = row{r.Flights, r.Cancelled, onTime, r.MeanDelay, r.WorstDelay}
	}
	return rows, nil
}
