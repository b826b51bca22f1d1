package schema

// unions compares where at least one side is a union. A reader is null or one
// other thing, and a writer's branches are each compared with that; as readers,
// other unions can only be the same.
func (c *comparison) unions(path string, old, now *Schema) {
	inner, nullable := now.NonNull()
	if inner.kind == KindUnion || inner.kind == KindNull {
		if !same(old, now) {
			c.differ(path, verdict{change: Retyped}, old, now)
		}
		return
	}
	was := old.valued()
	null := old.kind == KindNull || old.nullBranch() >= 0
	if len(was) == 0 { // nothing but null was ever written
		v := verdict{change: Retyped}
		if nullable {
			v = verdict{change: Widened, resolves: true}
		}
		c.differ(path, v, old, now)
		return
	}
	switch {
	case null && !nullable:
		c.differ(path, verdict{change: MadeRequired, narrows: true}, old, now)
	case !null && nullable:
		c.differ(path, verdict{change: MadeNullable, resolves: true}, old, now)
	case len(was) == 1 && old.nullBranch() != now.nullBranch():
		c.add(Difference{Path: path, Change: Reordered, Old: old.branchWords(maxWordDepth), New: now.branchWords(maxWordDepth), Resolves: true})
	}
	if len(was) == 1 {
		c.compare(path, was[0], inner)
		return
	}
	c.branches(path, old, now)
}

// valued returns what a schema's values are where they aren't null: one for each
// branch of a union.
func (s *Schema) valued() (all []*Schema) {
	if s.kind != KindUnion {
		if s.kind == KindNull {
			return nil
		}
		return []*Schema{s}
	}
	for _, b := range s.branches {
		if b.kind != KindNull {
			all = append(all, b)
		}
	}
	return all
}

// branches compares several branches with what reads them, which is one thing.
func (c *comparison) branches(path string, old, now *Schema) {
	inner, _ := now.NonNull()
	var within []Difference
	resolving, narrowing, all := 0, 0, old.valued()
	for _, b := range all {
		resolves, narrows, found := c.weigh(path, b, inner)
		switch {
		case resolves:
			resolving++
			within = append(within, found...)
		case narrows:
			narrowing++
		}
	}
	v := verdict{change: Narrowed, resolves: resolving > 0, mayFail: resolving > 0 && resolving < len(all), narrows: narrowing > 0}
	switch {
	case resolving == len(all):
		v.change = Widened
	case resolving+narrowing == 0:
		v.change = Retyped
	}
	c.differ(path, v, old, now)
	c.found = append(c.found, within...)
}

// weigh tells how a branch is read as now: whether it resolves, and if not,
// whether it narrows.
func (c *comparison) weigh(path string, branch, now *Schema) (resolves, narrows bool, found []Difference) {
	if branch.kind == KindRecord && now.kind == KindRecord && strangers(branch, now) {
		return false, false, nil
	}
	sub := comparison{open: c.open, key: c.key}
	sub.compare(path, branch, now)
	resolves, narrows = true, true
	for _, d := range sub.found {
		resolves = resolves && d.Resolves
		narrows = narrows && (d.Resolves || d.Narrows)
	}
	return resolves, narrows, sub.found
}

// strangers tells whether two records have fields and none in common: defaults
// alone would make one of the other, and of a union's several records each.
func strangers(old, now *Schema) bool {
	for _, i := range matchFields(old.fields, now.fields) {
		if i >= 0 {
			return false
		}
	}
	return len(old.fields) > 0 && len(now.fields) > 0
}
