package main

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recount counts a live job's input and output anew, from the topics alone: with the
// client library, and nothing of the job's.
type recount struct {
	written map[string]*spend // by user, what the input has
	seen    map[string]*spend // by user, what the newest row says
	records int64
	rows    int64
	again   int64 // rows that count no more orders than the row of the user before
}

func newRecount() *recount { return &recount{written: map[string]*spend{}, seen: map[string]*spend{}} }

// recountLive reads both topics.
func recountLive(ctx context.Context, brokers string, l live) (*recount, error) {
	c := newRecount()
	if err := c.read(ctx, brokers, l.Topic); err != nil {
		return nil, err
	}
	err := readTopic(ctx, brokers, l.Output, func(r *kgo.Record) error {
		row, err := seenRow(r.Value)
		c.row(r.Key, row)
		return err
	})
	return c, err
}

// read counts the input. Many of its records are equal: each is decoded once.
func (c *recount) read(ctx context.Context, brokers, topic string) error {
	times := map[string]*int64{}
	err := readTopic(ctx, brokers, topic, func(r *kgo.Record) error {
		n := times[string(r.Value)]
		if n == nil {
			n = new(int64)
			times[string(r.Value)] = n
		}
		*n++
		return nil
	})
	if err != nil {
		return err
	}
	for value, n := range times {
		var o struct {
			User  string `json:"user"`
			Cents int64  `json:"cents"`
		}
		if err := json.Unmarshal([]byte(value), &o); err != nil {
			return err
		}
		c.order(o.User, o.Cents, *n)
	}
	return nil
}

// order counts an order that was written some times.
func (c *recount) order(user string, cents, times int64) {
	total := c.written[user]
	if total == nil {
		total = &spend{}
		c.written[user] = total
	}
	total.Orders += times
	total.Cents += times * cents
	c.records += times
}

// row counts a row of the output, of which each has more orders than the one before.
func (c *recount) row(user []byte, row spend) {
	c.rows++
	last := c.seen[string(user)]
	switch {
	case last == nil:
		c.seen[string(user)] = &row
	case row.Orders <= last.Orders:
		c.again++
		*last = row
	default:
		*last = row
	}
}

// missing is how many records the output lacks, more how many it has counted twice, and
// wrong the number of users whose orders are right and whose amount is not.
func (c *recount) missing() (missing, more, wrong int64) {
	for user, want := range c.written {
		var got spend
		if row := c.seen[user]; row != nil {
			got = *row
		}
		missing += max(0, want.Orders-got.Orders)
		more += max(0, got.Orders-want.Orders)
		if got.Orders == want.Orders && got.Cents != want.Cents {
			wrong++
		}
	}
	for user, row := range c.seen {
		if c.written[user] == nil {
			more += row.Orders
		}
	}
	return missing, more, wrong
}

// seenRow takes a row's JSON apart by hand: there are tens of millions of them.
func seenRow(value []byte) (row spend, err error) {
	orders, rest, found := bytes.Cut(value, []byte(`,"Cents":`))
	cents, _, ended := bytes.Cut(rest, []byte(`,"At":`))
	orders, began := bytes.CutPrefix(orders, []byte(`{"Orders":`))
	if !found || !ended || !began {
		return row, fmt.Errorf("a row of another form: %s", value)
	}
	if row.Orders, err = strconv.ParseInt(string(orders), 10, 64); err != nil {
		return row, err
	}
	row.Cents, err = strconv.ParseInt(string(cents), 10, 64)
	return row, err
}
