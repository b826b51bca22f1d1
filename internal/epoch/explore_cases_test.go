package epoch

import (
	"slices"
	"testing"
)

// The settings, each as small as shows what it is for; with SLUICE_TORTURE=1 they are
// larger. What may still fail is bounded as well: two failures of different kinds are
// more than any history of the protocol needs.

func settings(long bool) (all []*setting) {
	for _, make := range []func(bool) *setting{
		owners, ownersCleaned, cleanedTwice, inPlace, upgradeAlone, upgradeResumed, upgradeSlept, upgradeForgets, upgradeForeign, upgradeDelivers,
		upgradeLoses, upgradeCleaned, upgradeTwice, upgradeShared, upgradeBetween, rolledBack, standby, givenUp, givenUpResumed,
		givenUpLate, dropped, backAgain, backSoon, notesCleaned, filled, filledAgain, filledByTwo, filledCleaned,
		overDatabase, overDatabaseHung, overBroker, overFolder, inParts, lostDatabase, lostAndTaken,
	} {
		all = append(all, make(long))
	}
	return all
}

// more is a number that is larger in the long test.
func more[N int | uint8](long bool, short, larger N) N {
	if long {
		return larger
	}
	return short
}

// with is a role with some of it changed.
func (r role) with(change func(*role)) role {
	change(&r)
	return r
}

// oldRole owns main at the beginning, newRole upgrades to n.
func oldRole() role {
	return role{name: "p0", build: explored1, begins: starting, owns: true}
}

func newRole() role {
	return role{name: "p1", build: explored2, begins: beginning, kind: Upgrade, branch: 1}
}

func cleaner(branch int8, rounds int) role {
	return role{name: "cleaner", begins: choosing, branch: branch, keep: 1, rounds: rounds}
}

// owners: two processes of one build commit, and take main from each other.
func owners(long bool) *setting {
	return &setting{
		name: "two owners", branches: []string{"main"}, records: more(long, 2, 3), batch: 2,
		roles: []role{oldRole(), {name: "p1", build: explored1, begins: starting}},
		left:  failures{crash: 1, create: more[uint8](long, 1, 2), hasty: more[uint8](long, 1, 2)}, endsWell: true, reaches: []string{"all done"},
	}
}

// ownersCleaned: the same, while clean-up runs.
func ownersCleaned(long bool) *setting {
	return &setting{
		name: "two owners and clean-up", branches: []string{"main"}, records: 2, objects: true,
		roles: []role{oldRole(), {name: "p1", build: explored1, begins: starting}, cleaner(0, 1)},
		left:  failures{crash: more[uint8](long, 0, 1), create: 1, hasty: 1}, endsWell: true, reaches: []string{"all done", "a floor in main"},
	}
}

// cleanedTwice: two clean-ups at once.
func cleanedTwice(long bool) *setting {
	return &setting{
		name: "two clean-ups", branches: []string{"main"}, records: 2, objects: true,
		roles: []role{oldRole(), cleaner(0, 1), cleaner(0, more(long, 1, 2)).with(func(r *role) { r.name = "another" })},
		left:  failures{crash: more[uint8](long, 0, 1)}, endsWell: true, reaches: []string{"all done", "a floor in main"},
	}
}

// inPlace: a build of another version takes main over.
func inPlace(long bool) *setting {
	return &setting{
		name: "a change in place", branches: []string{"main"}, records: more(long, 1, 2),
		roles: []role{oldRole(), {name: "p1", build: explored3, begins: starting}},
		left:  failures{crash: 2, create: more[uint8](long, 0, 1), hasty: 1}, endsWell: true, reaches: []string{"all done"},
	}
}

// upgradeAlone: an upgrade, without a sink; the old process goes on behind the seal if
// the new one does not.
func upgradeAlone(long bool) *setting {
	return &setting{
		name: "an upgrade", branches: []string{"main", "n", "m"}, records: 2, early: true, most: 2,
		roles: []role{oldRole(), newRole()}, spare: 2,
		left: failures{crash: 1, create: more[uint8](long, 0, 1), hasty: more[uint8](long, 0, 1)}, endsWell: true, reaches: []string{"all done", "generation 1", "generation 2"},
	}
}

// upgradeResumed: the upgrade's build can't run any more when it was killed.
func upgradeResumed(long bool) *setting {
	s := upgradeAlone(long)
	s.name, s.early = "an upgrade that dies for good", false
	s.roles[1].stays = true
	s.left.create, s.mayKill = 0, func(w *moment) bool { return len(w.live) == 1 }
	return s
}

// upgradeSlept: the create of the new branch's live record, or of anything else, is
// lost or late.
func upgradeSlept(long bool) *setting {
	s := upgradeAlone(long)
	s.name, s.early, s.left = "an upgrade over a bad network", long, failures{create: more[uint8](long, 1, 2)}
	return s
}

// upgradeForgets: main deletes an entry between two epochs that n covers in one step.
func upgradeForgets(long bool) *setting {
	s := upgradeAlone(long)
	s.name, s.forget, s.records = "an upgrade, and a request to forget", 2, more(long, 2, 3)
	return s
}

// upgradeForeign: each build has a source that the other lacks.
func upgradeForeign(long bool) *setting {
	s := upgradeAlone(long)
	s.name, s.foreign = "an upgrade with other sources", true
	s.spare = 0
	s.reaches = []string{"all done", "generation 1"}
	return s
}

// upgradeDelivers: an upgrade, while main and n deliver.
func upgradeDelivers(long bool) *setting {
	return &setting{
		name: "an upgrade that delivers", branches: []string{"main", "n"}, records: more(long, 1, 2), sink: aDatabase,
		roles: []role{oldRole(), newRole()},
		left:  failures{crash: 1}, endsWell: true, reaches: []string{"all done", "generation 1", "delivered over a cut"},
	}
}

// upgradeLoses: the sink loses its record meanwhile.
func upgradeLoses(long bool) *setting {
	s := upgradeDelivers(long)
	s.name, s.left, s.endsWell = "an upgrade and a sink that loses", failures{loss: 1}, false
	s.reaches = append(s.reaches, "stopped")
	return s
}

// upgradeCleaned: an upgrade, while clean-up runs.
func upgradeCleaned(long bool) *setting {
	return &setting{
		name: "an upgrade and clean-up", branches: []string{"main", "n"}, records: 2, objects: true, early: true,
		roles: []role{oldRole(), newRole(), cleaner(0, 1)},
		left:  failures{crash: more[uint8](long, 0, 1)}, endsWell: true, reaches: []string{"all done", "generation 1", "a floor in main"},
	}
}

// upgradeTwice: two builds upgrade at once.
func upgradeTwice(long bool) *setting {
	return &setting{
		name: "two upgrades", branches: []string{"main", "n1", "n2"}, records: 1,
		roles: []role{oldRole(), newRole(), {name: "p2", build: explored3, begins: beginning, kind: Upgrade, branch: 2}},
		left:  failures{crash: more[uint8](long, 0, 1)}, endsWell: true, reaches: []string{"all done", "generation 1"},
	}
}

// upgradeShared: two processes of one build upgrade.
func upgradeShared(long bool) *setting {
	return &setting{
		name: "two processes of an upgrade", branches: []string{"main", "n"}, records: more(long, 2, 1), most: 2,
		roles: []role{oldRole(), newRole(), newRole().with(func(r *role) { r.name = "p2" })},
		left:  failures{crash: more[uint8](long, 0, 1), hasty: 1}, endsWell: true, reaches: []string{"all done", "generation 1"},
	}
}

// upgradeBetween: n is upgraded to while a third build changes main in place.
func upgradeBetween(long bool) *setting {
	return &setting{
		name: "an upgrade between two openings", branches: []string{"main", "n"}, records: 1,
		roles: []role{oldRole().with(func(r *role) { r.dead = true }), newRole(), {name: "p2", build: explored3, begins: starting}},
		left:  failures{crash: 2, hasty: more[uint8](long, 0, 1)}, reaches: []string{"all done", "generation 1"},
	}
}

// rolledBack: the old build comes back behind the new one.
func rolledBack(long bool) *setting {
	return &setting{
		name: "a rollback", branches: []string{"main", "n", "r"}, records: 1, sink: aDatabase,
		roles: []role{
			oldRole(), newRole(),
			{name: "p2", build: explored1, begins: beginning, kind: Rollback, branch: 2, after: func(w *moment) bool { return len(w.live) > 1 }},
		},
		left: failures{crash: more[uint8](long, 0, 1)}, endsWell: true, reaches: []string{"all done", "generation 2", "delivered over a cut"},
	}
}

// standby: a process of the old build follows as well.
func standby(long bool) *setting {
	return &setting{
		name: "an upgrade and a standby", branches: []string{"main", "n", "s"}, records: more(long, 1, 2),
		roles: []role{oldRole(), newRole(), {name: "p2", build: explored1, begins: beginning, kind: Failover, branch: 2}},
		left:  failures{crash: more[uint8](long, 0, 1)}, endsWell: true, reaches: []string{"all done", "generation 1"},
	}
}

// givenUp: a person gives the upgrade up, and clean-up runs.
func givenUp(long bool) *setting {
	begun := func(w *moment) bool { return long || w.logs[1].begun }
	return &setting{
		name: "an upgrade that is given up", branches: []string{"main", "n"}, records: 2, objects: true,
		roles: []role{
			oldRole(), newRole().with(func(r *role) { r.stays = true }),
			{name: "p2", begins: givingUp, branch: 1, stays: true, after: begun}, cleaner(0, 1).with(func(r *role) { r.after = begun }),
		},
		reaches: []string{"all done", "generation 1", "a floor in main"},
	}
}

// givenUpResumed: the old process goes on if main was sealed by then.
func givenUpResumed(long bool) *setting {
	return &setting{
		name: "an upgrade that is given up, and main resumed", branches: []string{"main", "n", "m", "o", "m2", "o2"}, records: more(long, 1, 2),
		roles: []role{
			oldRole(), newRole().with(func(r *role) { r.stays = true }), {name: "p2", begins: givingUp, branch: 1, stays: true},
		},
		spare: 2,
		left:  failures{create: more[uint8](long, 0, 1)}, endsWell: true, reaches: []string{"all done", "generation 1"},
	}
}

// givenUpLate: its live record is late, and lands when all of it is gone.
func givenUpLate(long bool) *setting {
	late := func(w *moment) bool {
		return slices.ContainsFunc(w.late, func(l lateCreate) bool { return l.live != nil }) || len(w.live) > 1
	}
	return &setting{
		name: "a late live record", branches: []string{"main", "n", "m"}, records: 1, objects: true,
		roles: []role{
			oldRole().with(func(r *role) { r.dead = !long }),
			newRole().with(func(r *role) { r.stays = true }),
			{name: "p2", begins: givingUp, branch: 1, stays: true, after: late},
			cleaner(1, 1).with(func(r *role) { r.after = func(w *moment) bool { return w.logs[1].given } }),
			{name: "p3", build: explored3, begins: beginning, kind: Upgrade, branch: 2, after: func(w *moment) bool { return len(w.live) > 1 }},
		},
		left: failures{create: 1}, reaches: []string{"all done", "generation 2", "a floor in n"},
	}
}

// dropped: the new build lacks the sink, and clean-up runs.
func dropped(long bool) *setting {
	cut := func(w *moment) bool { return long || len(w.live) > 1 }
	return &setting{
		name: "a sink that is dropped", branches: []string{"main", "n"}, records: 2, objects: true, sink: aDatabase,
		roles:   []role{oldRole(), newRole().with(func(r *role) { r.lacks = true }), cleaner(0, 1).with(func(r *role) { r.after = cut })},
		reaches: []string{"all done", "generation 1", "a floor in main"},
	}
}

// backAgain: main's rest is owed when a build without the sink goes live, and then one
// that has it.
func backAgain(long bool) *setting {
	newest := func(n int) func(w *moment) bool {
		return func(w *moment) bool { return len(w.live) > n && (n == 0 || w.position(Position(n+1)) != nil) }
	}
	return &setting{
		name: "a sink that is back", branches: []string{"main", "n", "r"}, records: 3, sink: aDatabase,
		roles: []role{
			oldRole().with(func(r *role) { r.stays = true }),
			newRole().with(func(r *role) {
				r.lacks, r.after = true, func(w *moment) bool { return w.position(1) != nil && w.procs[0].end != up || len(w.live) > 1 }
			}),
			{name: "p2", build: explored3, begins: beginning, kind: Upgrade, branch: 2, gap: true, after: newest(1)},
		},
		left: failures{crash: 1}, reaches: []string{"all done", "generation 2", "delivered over a cut"},
	}
}

// backSoon: the build that has the sink again comes before anything else does.
func backSoon(long bool) *setting {
	s := backAgain(long)
	s.name, s.records, s.roles[2].after = "a sink that is back at once", 2, func(w *moment) bool { return len(w.live) > 1 }
	return s
}

// notesCleaned: an owner notes between its data, while clean-up runs.
func notesCleaned(long bool) *setting {
	return &setting{
		name: "notes and clean-up", branches: []string{"main"}, records: 2, objects: true, notes: true, sink: aDatabase,
		roles: []role{oldRole(), cleaner(0, more(long, 1, 2))},
		left:  failures{crash: more[uint8](long, 0, 1)}, endsWell: true, reaches: []string{"all done", "a floor in main"},
	}
}

// filled: the new build has a sink that the old one lacks, and fills it before the cut.
func filled(long bool) *setting {
	return &setting{
		name: "a sink that is filled", branches: []string{"main", "n"}, records: 2, most: 2, sink: aDatabase, fresh: true,
		roles: []role{oldRole().with(func(r *role) { r.lacks = true }), newRole().with(func(r *role) { r.fills = true })},
		left:  failures{crash: 1, doubt: more[uint8](long, 0, 1), hasty: more[uint8](long, 0, 1)}, endsWell: true,
		reaches: []string{"all done", "generation 1", "delivered over a cut", "filled before the cut"},
	}
}

// filledAgain: the branch that fills the sink is given up, and another build begins to
// fill it.
func filledAgain(long bool) *setting {
	s := filled(long)
	s.name, s.records, s.branches, s.left = "a sink that is filled again", 2, []string{"main", "n", "m"}, failures{crash: more[uint8](long, 0, 1)}
	s.roles[1].stays, s.endsWell = true, false
	s.roles = append(s.roles,
		role{name: "p2", begins: givingUp, branch: 1, stays: true, after: func(w *moment) bool { return len(w.sink.rows) > 0 }},
		role{name: "p3", build: explored3, begins: beginning, kind: Upgrade, branch: 2, fills: true, after: func(w *moment) bool { return w.logs[1].given }},
	)
	s.reaches = append(s.reaches, "emptied")
	return s
}

// filledByTwo: two builds fill the sink at once.
func filledByTwo(long bool) *setting {
	s := filled(long)
	s.name, s.records, s.branches, s.left = "a sink that two fill", 1, []string{"main", "n", "m"}, failures{crash: more[uint8](long, 0, 1)}
	s.roles = append(s.roles, role{name: "p2", build: explored3, begins: beginning, kind: Upgrade, branch: 2, fills: true})
	s.reaches = append(s.reaches, "emptied")
	return s
}

// filledCleaned: the same as filled, while the new branch is cleaned up.
func filledCleaned(long bool) *setting {
	s := filled(long)
	s.name, s.objects, s.left = "a sink that is filled, and clean-up", true, failures{crash: more[uint8](long, 0, 1)}
	s.roles = append(s.roles, cleaner(1, 1))
	s.reaches = append(s.reaches, "a floor in n")
	return s
}

// over is a sink of a kind, and two processes of one build.
func over(kind sinkKind, name string, long bool) *setting {
	return &setting{
		name: name, branches: []string{"main"}, records: more(long, 1, 2), sink: kind,
		roles: []role{oldRole(), {name: "p1", build: explored1, begins: starting}},
		left:  failures{crash: 1, doubt: more[uint8](long, 1, 2), hasty: 1}, endsWell: true, reaches: []string{"all done"},
	}
}

func overDatabase(long bool) *setting { return over(aDatabase, "two deliverers to a database", long) }

func overBroker(long bool) *setting {
	s := over(aBroker, "two deliverers to a broker", long)
	s.records = 1
	return s
}

func overFolder(long bool) *setting {
	s := over(aFolder, "two deliverers to a folder", long)
	s.records, s.left = 2, failures{crash: more[uint8](long, 0, 1), hasty: 1}
	return s
}

func overDatabaseHung(long bool) *setting {
	s := over(aDatabase, "a deliverer that hangs", long)
	s.left = failures{hang: 1, hasty: more[uint8](long, 0, 1), doubt: more[uint8](long, 0, 1)}
	return s
}

func inParts(long bool) *setting {
	s := over(aDatabase, "deliveries in parts", long)
	s.records, s.parts = 1, more(long, 2, 3)
	return s
}

// lostDatabase: the sink loses its record or goes back, or the store goes back.
func lostDatabase(long bool) *setting {
	s := over(aDatabase, "a database and a store that lose", long)
	s.records, s.left, s.endsWell = 2, failures{loss: 1, crash: 1}, false
	s.reaches = append(s.reaches, "stopped")
	return s
}

// lostAndTaken: the same, while another process takes main over.
func lostAndTaken(long bool) *setting {
	s := lostDatabase(long)
	s.name, s.records, s.left.hasty = "a database that loses while main is taken", 1, 1
	return s
}

// flaw is a rule that is switched off, a setting that shows what it is for, and what
// comes of it.
type flaw struct {
	name string
	in   func(bool) *setting
	harm string
	// without is the rule, if it has not the flaw's name.
	without string
}

// What breaks.
const (
	wedged    = "never goes on"
	twice     = "not each position once"
	counted   = "the live epoch before it"
	uncounted = "that doesn't count"
	removed   = "was removed"
	replaced  = "was replaced"
	disagrees = "disagree, and nothing has been lost"
)

// flaws are the histories of the protocol's section 4, and others that belong to its
// rules. Those of many tasks (M) have no decisions yet: they belong here when they have.
// Rewriting (D11) has an exploration of its own: see TestExploreRewriting. H17 and H18 are
// played in turns: see TestExploreInTurns.
func flaws() []flaw {
	all := []flaw{
		{name: "H1: each generation delivers its own", in: upgradeDelivers, harm: wedged},
		{name: "H2: the dead are waited for", in: upgradeDelivers, harm: wedged},
		{name: "H3: the progress is read before the producer is started", in: overBroker, harm: twice},
		{name: "H4: a transactional id of the process's own", in: overBroker, harm: twice},
		{name: "H5: the same producer goes on", in: overBroker, harm: twice},
		{name: "H6a: there is no row to lock", in: overDatabase, harm: twice, without: "H6, D2: the row comes with the first delivery"},
		{name: "H6b: the server ends no session", in: overDatabaseHung, harm: wedged},
		{name: "H6c: the row comes with the first delivery", in: lostDatabase, harm: twice, without: "H6, D2: the row comes with the first delivery"},
		{name: "H7: mine by attempt, whatever the bytes", in: owners, harm: uncounted},
		{name: "H8: the next one in doubt", in: owners, harm: "stands behind nothing"},
		{name: "H9: the floor is not looked at", in: ownersCleaned, harm: uncounted},
		{name: "H10: left-overs go at once", in: ownersCleaned, harm: removed},
		{name: "H10: the owner's left-overs go", in: notesCleaned, harm: removed},
		{name: "H11: the floor before the pin", in: upgradeCleaned, harm: removed},
		{name: "H11: the pins before the floor", in: upgradeCleaned, harm: removed},
		{name: "H11a: seals don't look at the floor", in: upgradeCleaned, harm: counted},
		{name: "H11b: a pin is taken away by age", in: givenUp, harm: removed},
		{name: "H12: outboxes go before they are delivered", in: dropped, harm: removed},
		{name: "H12: the live build's sinks are asked", in: dropped, harm: removed},
		{name: "H13: any live record may follow", in: upgradeTwice, harm: counted},
		{name: "H14: the seal names its heir", in: upgradeResumed, harm: wedged},
		{name: "H15: live before the seal", in: upgradeAlone, harm: counted},
		{name: "H15: live before the end is covered", in: upgradeAlone, harm: counted},
		{name: "H16: a branch that was given up goes live", in: givenUp, harm: "was given up, and goes live"},
		{name: "H16: a branch without epochs is taken at its word", in: givenUpLate, harm: "chain of live records is broken"},
		{name: "H16: an ended log goes while it is needed", in: upgradeCleaned, harm: "chain of live records is broken"},
		{name: "H19: names are skipped", in: upgradeShared, harm: "stands behind nothing"},
		{name: "H20: what is followed is not kept", in: upgradeCleaned, harm: "was cleaned away"},
		{name: "H20: what is gone is passed over", in: upgradeCleaned, harm: "of the records that it has read comes"},
		{name: "H20: a coarse step has one clock", in: upgradeAlone, harm: "of the records that it has read comes"},
		{name: "H20, forget: edits in the middle of a step", in: upgradeForgets, harm: "what was to be forgotten"},
		{name: "H20a: all sources must be at the end", in: upgradeForeign, harm: wedged},
		{name: "H21: a sink that is back starts at the cut", in: backAgain, harm: twice},
		{name: "H22: what isn't there is to be delivered", in: lostDatabase, harm: twice},
		{name: "H22: manifests are not compared", in: lostDatabase, harm: "other rows"},
		{name: "H22a: a follower keeps what it knew of the sink", in: upgradeLoses, harm: disagrees},
		{name: "H23: a consumer takes what it sees", in: overFolder, harm: "gets position 1 twice"},
		{name: "C5: live from memory", in: upgradeTwice, harm: "another branch's"},
		{name: "C6: nothing is noted without data", in: upgradeDelivers, harm: wedged},
		{name: "C6, U7: nothing is noted at a cut", in: upgradeLoses, harm: disagrees},
		{name: "T6: replaced builds are not noted", in: inPlace, harm: replaced},
		{name: "T6: the first opening is of the new version", in: inPlace, harm: "reads a state of version 1 as one of version 2"},
		{name: "T6: the opening does not say who writes", in: upgradeBetween, harm: replaced},
		{name: "D2: the record's id is not compared", in: lostAndTaken, harm: twice},
		{name: "D2: a record is made where the sink begins", in: backAgain, harm: disagrees},
		{name: "D9: parts are told apart by positions alone", in: inParts, harm: twice},
		{name: "D10: the first delivery begins at the cut", in: filled, harm: disagrees},
		{name: "D10: a record is taken as it is", in: filledAgain, harm: disagrees},
		{name: "D10: the rows stay", in: filledAgain, harm: twice},
		{name: "D10: a branch that may be live is not waited for", in: filledByTwo, harm: disagrees},
		{name: "D10: what fills a sink is not kept", in: filledCleaned, harm: removed},
		{name: "Builds: a replaced build goes live", in: standby, harm: replaced},
	}
	for i, f := range all {
		if f.without == "" {
			all[i].without = f.name
		}
	}
	return all
}

// TestExploreInTurns plays what goes wrong only if all are equally fast: nothing is
// broken, and nothing gets on.
func TestExploreInTurns(t *testing.T) {
	const most = 400 // steps, many times what is needed
	two := []role{oldRole(), {name: "p1", build: explored1, begins: starting}}
	sealed := func(w *moment) bool { return w.over(0) }
	for _, c := range []struct {
		without string
		in      setting
		done    func(*moment) bool
		begin   func(*moment) *moment
	}{
		// Main commits as fast as it can.
		{"H17: it catches up before it seals again", setting{branches: []string{"main", "n"}, records: most, objects: true, early: true, roles: []role{oldRole(), newRole()}}, sealed, nil},
		// p0 has put an epoch with the sink's record, and p1 takes main over from it.
		{"H18: who is fenced starts again", setting{branches: []string{"main"}, records: 1, sink: aBroker, roles: two, left: failures{hasty: 1}}, (*moment).finished, func(w *moment) *moment {
			w = w.moved(act{stepping, 0}).moved(act{stepping, 0}).moved(act{stepping, 1})
			return w.moved(act{stepping, 1}, 1).moved(act{stepping, 1})
		}},
		// Both processes are started at once, and deliver a large epoch.
		{"H18: nobody stands by", setting{branches: []string{"main"}, records: 1, sink: aBroker, parts: 12, roles: two, left: failures{crash: 1}}, (*moment).finished, func(w *moment) *moment {
			return w.moved(act{crashing, 0})
		}},
	} {
		t.Run(c.without, func(t *testing.T) {
			for _, without := range []string{"", c.without} {
				s := c.in
				s.without = without
				w := newMoment(&s)
				if c.begin != nil {
					w = c.begin(w)
				}
				steps := fairly(w, c.done, most)
				if without == "" && steps < 0 {
					t.Errorf("with the rule it doesn't get on in %d steps", most)
				}
				if without != "" && steps >= 0 {
					t.Errorf("without the rule all is done after %d steps: the history tests nothing", steps)
				}
				t.Logf("without %q: %d steps", without, steps)
			}
		})
	}
}
