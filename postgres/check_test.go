package postgres

import (
	"errors"
	"testing"

	"github.com/sluicestream/sluice/connector"
)

var _ connector.Checker = (*sink)(nil)

// A check makes nothing that a start would make: neither the table and its view,
// nor columns that it lacks.
func TestCheckChangesNothing(t *testing.T) {
	p := newPlace(t)
	check := func() {
		t.Helper()
		if err := wideSink(p, CreateTable(), View("v")).Check(t.Context(), opening()); err != nil {
			t.Error(err)
		}
	}
	check()
	p.expect("select count(*) from pg_class where relnamespace = '"+p.schema+"'::regnamespace", "0")
	p.exec("create table @.t (k text primary key, n bigint)")
	check()
	p.expect("select string_agg(attname, ',' order by attnum) from pg_attribute where attrelid = '"+p.schema+".t'::regclass and attnum > 0", "k,n")
}

// Where nobody answers, a check can't tell; what the server refuses it can.
func TestCheckWithoutAnswer(t *testing.T) {
	away := Upsert("t", func(string, wide) wide { return wide{} }, Key("k"), Database("postgres://nobody@127.0.0.1:1/none")).(connector.Checker)
	err := away.Check(t.Context(), opening())
	var unconnected *ConnectError
	if !errors.Is(err, connector.ErrNotAsked) || !errors.As(err, &unconnected) {
		t.Errorf("without a server: %v", err)
	}
	p := newPlace(t)
	if err := wideSink(p).Check(t.Context(), opening()); err == nil || errors.Is(err, connector.ErrNotAsked) {
		t.Errorf("without the table: %v", err)
	}
}
