package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicestream/sluice/connector"
	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/internal/services"
)

// TestGrantsThatAreRevoked takes away, while a sink runs, one privilege at a time:
// the delivery's error names it, and the statement that gives it back, which does.
func TestGrantsThatAreRevoked(t *testing.T) {
	p := newPlace(t)
	user := services.Unique("clerk")
	p.exec("create role " + user + " login password '" + secret + "'; create table @.spend (user_id text primary key, orders bigint, note text); " + createRecords("@."+recordTable))
	t.Cleanup(func() { p.exec("drop owned by " + user + "; drop role " + user) })
	all := []string{"usage on schema " + p.schema, "select, insert, update on @.sluice_delivery", "select, insert, update, delete on @.spend"}
	for _, grant := range all {
		p.exec("grant " + grant + " to " + user)
	}
	target := openTarget(t, spendSink(p, Database(address(p.server, user, secret, "postgres"))))
	deliverHard(t, target, spends(t, 1, "a", 1))
	position := 1
	for _, c := range []struct{ revoke, names, gives string }{
		{"insert on @.spend", "the privilege insert", "grant insert on @.spend to " + user},
		{"update on @.spend", "the privilege update", "grant update on @.spend to " + user},
		{"select on @.spend", "the privilege select", "grant select on @.spend to " + user},
		{"delete on @.spend", "the privilege delete", "grant delete on @.spend to " + user},
		{"update on @.sluice_delivery", "may not read, insert and update", "grant select, insert, update on @.sluice_delivery to " + user},
		{"usage on schema " + p.schema, "the privilege usage on schema " + p.schema, "grant usage on schema " + p.schema + " to " + user},
	} {
		position++
		d := spends(t, connector.Position(position), "ab", 0, 2)
		p.exec("revoke " + c.revoke + " from " + user)
		_, _, err := target.Deliver(t.Context(), d)
		says(t, err, "delivering position ", "permission denied", c.names, "run: "+quotedGrant(p, c.gives))
		p.exec(c.gives)
		deliverHard(t, target, d)
	}
}

// TestGrantThatStaysRevoked: a privilege that isn't given back ends the tries, with
// nothing written.
func TestGrantThatStaysRevoked(t *testing.T) {
	p := newPlace(t)
	user := services.Unique("clerk")
	p.exec("create role " + user + " login password '" + secret + "'; create table @.spend (user_id text primary key, orders bigint, note text); " + createRecords("@."+recordTable))
	t.Cleanup(func() { p.exec("drop owned by " + user + "; drop role " + user) })
	p.exec("grant usage on schema " + p.schema + " to " + user + "; grant select, insert, update on @.sluice_delivery to " + user + "; grant select, insert, update, delete on @.spend to " + user)
	opened := openTarget(t, spendSink(p, Database(address(p.server, user, secret, "postgres"))))
	clock := &steps{Clock: env.Real().Clock}
	opened.(*target).clock = clock
	p.exec("revoke insert on @.spend from " + user)
	d := spends(t, 1, "a", 1)
	for _, after := range []time.Duration{0, othersWithin - 1} {
		clock.gone += after
		if _, _, err := opened.Deliver(t.Context(), d); err == nil || errors.Is(err, connector.ErrRejected) {
			t.Fatalf("after %v: %v, expected an error that can be tried again", after, err)
		}
	}
	clock.gone++
	_, _, err := opened.Deliver(t.Context(), d)
	denied, ok := errors.AsType[*DeniedError](err)
	if !ok || denied.User == "" {
		t.Fatalf("%v, expected a DeniedError", err)
	}
	wantError(t, err, connector.ErrRejected, "permission denied", "run: "+quotedGrant(p, "grant insert on @.spend to "+user))
	p.expect("select count(*) from @.spend", "0")
	p.exec("grant insert on @.spend to " + user)
	deliverHard(t, opened, d)
}

// quotedGrant is a statement as the sink writes it: with every name in quotes.
func quotedGrant(p *place, sql string) string {
	words := strings.Fields(strings.ReplaceAll(sql, "schema ", "schema/"))
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "@."):
			words[i] = quote(p.schema, w[2:])
		case strings.HasPrefix(w, "schema/"):
			words[i] = "schema " + quote(w[len("schema/"):])
		case i == len(words)-1:
			words[i] = quote(w)
		}
	}
	return strings.Join(words, " ")
}
