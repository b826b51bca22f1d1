package changes

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"

	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
)

// variants are the jobs, by name.
var variants = map[string]func(p *parts){
	"base": func(*parts) {},

	// What came before the base, oldest first.
	"ancestor 1": func(p *parts) {
		p.sum = ancestorSum
		p.cents = folded(sluice.NewState[string, countText]("coins"), (*countText).add)
		p.shops = func(s *sluice.Stream[event]) {
			s.KeyBy(event.shop).Fold(sluice.NewState[string, countSmall]("shops"), (*countSmall).add)
		}
	},
	"ancestor 2": func(p *parts) {
		p.cents = folded(sluice.NewState[string, countText]("coins"), (*countText).add)
		p.shops = func(s *sluice.Stream[event]) {
			s.KeyBy(event.shop).Fold(sluice.NewState[string, countSmall]("shops"), (*countSmall).add)
		}
	},
	"ancestor 3": func(p *parts) {
		p.cents = folded(sluice.NewState[string, count]("coins").Migrate(sluice.Migrate(textCount)), (*count).addCents)
	},
	"ancestor 4": func(p *parts) {
		p.cents = folded(sluice.NewState[string, count]("cents").TakesOver("coins"), (*count).addCents)
	},

	// Nothing that matters.
	"state type renamed": func(p *parts) {
		type Sum2 Sum
		p.sum = folded(sluice.NewState[string, Sum2]("sum"), func(s *Sum2, e event) { (*Sum)(s).add(e) })
	},
	"function renamed": func(p *parts) { p.cents = folded(sluice.NewState[string, count]("cents"), (*count).addMoney) },
	"function without a name": func(p *parts) {
		p.cents = folded(sluice.NewState[string, count]("cents"), func(c *count, e event) { c.N += e.Cents })
	},
	"key function renamed": func(p *parts) {
		p.byUser = func(s *sluice.Stream[event]) *sluice.Keyed[string, event] { return s.KeyBy(event.who) }
	},
	"stateless steps": func(p *parts) {
		p.byUser = func(s *sluice.Stream[event]) *sluice.Keyed[string, event] {
			return s.Filter(func(e event) bool { return e.User != "" }).Map(func(e event) event { return e }).KeyBy(event.user)
		}
	},
	"fold that keeps": func(p *parts) {
		p.cents = func(k *sluice.Keyed[string, event]) {
			k.FoldKeep(sluice.NewState[string, count]("cents"), func(c *count, e event) bool { c.N += e.Cents; return true })
		}
	},
	"fold becomes process": func(p *parts) {
		p.cents = func(k *sluice.Keyed[string, event]) {
			k.Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], event) {
				c := p.State(sluice.NewState[string, count]("cents"))
				return func(_ *sluice.Context[string, string], e event) { c.Update().N += e.Cents }
			}).Discard()
		}
	},
	"operators in another order": func(p *parts) { p.sum, p.cents = p.cents, p.sum },
	"dead letters": func(p *parts) {
		p.more = func(job *sluice.Job, _ *sluice.Stream[event]) {
			job.DeadLetter("dead", file.Append[sluice.DeadLetter]("out/dead"))
		}
	},
	"sink added": func(p *parts) {
		p.more = func(_ *sluice.Job, s *sluice.Stream[event]) { s.To("all", file.Append[event]("out/all")) }
	},

	// What resolves.
	"boolean added": sumOf(func(s *struct {
		Core
		Sizes
		Last
		Standing
		Tags
		Shops
		Maybe
		VIP bool
	}, e event) {
		each(e, &s.Core, &s.Sizes, &s.Last, &s.Standing, &s.Tags, &s.Shops, &s.Maybe)
	}),
	"default that isn't zero": sumOf(func(s *struct {
		Core
		Sizes
		Last
		Standing
		Tags
		Shops
		Maybe
		Limit int64 `avro:"Limit,default=7"`
	}, e event) {
		each(e, &s.Core, &s.Sizes, &s.Last, &s.Standing, &s.Tags, &s.Shops, &s.Maybe)
	}),
	"pointer added": sumOf(func(s *struct {
		Core
		Sizes
		Last
		Standing
		Tags
		Shops
		Maybe
		Best *int64
	}, e event) {
		each(e, &s.Core, &s.Sizes, &s.Last, &s.Standing, &s.Tags, &s.Shops, &s.Maybe)
	}),
	"nested field added": sumOf(func(s *struct {
		Core
		Sizes
		Last
		Standing
		TagsMore
		Shops
		Maybe
	}, e event) {
		each(e, &s.Core, &s.Sizes, &s.Last, &s.Standing, &s.TagsMore, &s.Shops, &s.Maybe)
	}),
	"field of a map's values added": sumOf(func(s *struct {
		Core
		Sizes
		Last
		Standing
		Tags
		ShopsMore
		Maybe
	}, e event) {
		each(e, &s.Core, &s.Sizes, &s.Last, &s.Standing, &s.Tags, &s.ShopsMore, &s.Maybe)
	}),
	"widened": sumOf(func(s *struct {
		Core
		SizesWide
		Last
		Standing
		Tags
		Shops
		Maybe
	}, e event) {
		each(e, &s.Core, &s.SizesWide, &s.Last, &s.Standing, &s.Tags, &s.Shops, &s.Maybe)
	}),
	"made nullable": sumOf(func(s *struct {
		Core
		Sizes
		LastNullable
		Standing
		Tags
		Shops
		Maybe
	}, e event) {
		each(e, &s.Core, &s.Sizes, &s.LastNullable, &s.Standing, &s.Tags, &s.Shops, &s.Maybe)
	}),
	"symbol added": sumOf(func(s *struct {
		Core
		Sizes
		Last
		StandingMore
		Tags
		Shops
		Maybe
	}, e event) {
		each(e, &s.Core, &s.Sizes, &s.Last, &s.StandingMore, &s.Tags, &s.Shops, &s.Maybe)
	}),
	"renamed with an alias": sumOf(func(s *struct {
		CoreAlias
		Sizes
		Last
		Standing
		Tags
		Shops
		Maybe
	}, e event) {
		each(e, &s.CoreAlias, &s.Sizes, &s.Last, &s.Standing, &s.Tags, &s.Shops, &s.Maybe)
	}),
	"text becomes bytes": sumOf(func(s *struct {
		Core
		Sizes
		LastBytes
		Standing
		Tags
		Shops
		Maybe
	}, e event) {
		each(e, &s.Core, &s.Sizes, &s.LastBytes, &s.Standing, &s.Tags, &s.Shops, &s.Maybe)
	}),
	"alias alone": sumOf(func(s *struct {
		CoreSpare
		Sizes
		Last
		Standing
		Tags
		Shops
		Maybe
	}, e event) {
		each(e, &s.CoreSpare, &s.Sizes, &s.Last, &s.Standing, &s.Tags, &s.Shops, &s.Maybe)
	}),
	"reordered": sumOf(func(s *struct {
		Maybe
		Shops
		Tags
		Standing
		Last
		Sizes
		Core
	}, e event) {
		each(e, &s.Maybe, &s.Shops, &s.Tags, &s.Standing, &s.Last, &s.Sizes, &s.Core)
	}),
	"list's values grow": func(p *parts) {
		type part2 struct {
			Cents int64
			Free  bool
		}
		p.visits = func(k *sluice.Keyed[string, event]) {
			k.Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], event) {
				m, l := p.Map(sluice.NewMapState[string, string, count]("by_shop")), p.List(sluice.NewListState[string, part2]("visits"))
				return func(_ *sluice.Context[string, string], e event) {
					m.Update(e.Shop).N++
					l.Append(part2{Cents: e.Cents})
				}
			}).Discard()
		}
	},
	"map's values grow": func(p *parts) {
		type count2 struct {
			N   int64
			Top string
		}
		p.visits = func(k *sluice.Keyed[string, event]) {
			k.Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], event) {
				m, l := p.Map(sluice.NewMapState[string, string, count2]("by_shop")), p.List(sluice.NewListState[string, Part]("visits"))
				return func(_ *sluice.Context[string, string], e event) {
					m.Update(e.Shop).N++
					l.Append(Part{e.Cents})
				}
			}).Discard()
		}
	},
	"renamed state": func(p *parts) {
		p.cents = folded(sluice.NewState[string, count]("money").TakesOver("cents"), (*count).addCents)
	},
	"sink's nullable column added": ordersTo(func(_ string, c count) rowMore { return rowMore{Orders: c.N} }),
	"key wider":                    byNumber[int64](func(e event) int64 { return int64(e.Number) }),
	"by number":                    byNumber[int32](func(e event) int32 { return e.Number }),
	"topic wider": func(p *parts) {
		p.events = func(job *sluice.Job) *sluice.Stream[event] {
			return job.From("events", file.JSONLines[event]("in/*.json*"))
		}
	},
	"codec stricter": func(p *parts) {
		p.events = func(job *sluice.Job) *sluice.Stream[event] {
			return job.From("events", file.JSONLines[event]("in/*.jsonl", file.Strict()))
		}
	},

	// What migrates.
	"retyped with a function": textSum(sluice.NewState[string, sumText]("sum").Migrate(sluice.Migrate(sumToText))),
	"in two steps": func(p *parts) {
		p.cents = folded(sluice.NewState[string, countThird]("cents").Migrate(sluice.Migrate(secondCount).Then(thirdCount)), (*countThird).add)
	},
	"first of two steps": func(p *parts) {
		p.cents = folded(sluice.NewState[string, countSecond]("cents").Migrate(sluice.Migrate(secondCount)), (*countSecond).add)
	},
	"meaning with a function": func(p *parts) {
		p.cents = folded(sluice.NewState[string, count]("cents").Meaning(1).Migrate(sluice.Migrate(tenfold).From(0)), func(c *count, e event) { c.N += 10 * e.Cents })
	},
	"split": func(p *parts) {
		p.cents = func(k *sluice.Keyed[string, event]) {
			k.Fold(sluice.NewState[string, count]("cents"), (*count).addCents)
			k.Fold(sluice.NewState[string, countSecond]("euros").TakesOver("cents", sluice.Migrate(secondCount)), (*countSecond).add)
		}
	},
	"two become one": func(p *parts) {
		p.cents, p.orders = nil, func(k *sluice.Keyed[string, event]) {
			both := sluice.NewState[string, countBoth]("both").
				TakesOver("orders", sluice.Migrate(func(c count) (countBoth, error) { return countBoth{Orders: c.N}, nil })).
				TakesOver("cents", sluice.Migrate(func(c count) (countBoth, error) { return countBoth{Cents: c.N}, nil })).
				Merge(func(a *countBoth, b countBoth) { a.Orders += b.Orders; a.Cents += b.Cents })
			k.Fold(both, (*countBoth).add).To("orders", file.Upsert("out/orders", func(_ string, c countBoth) row { return row{Orders: c.Orders} }))
		}
	},
	"other keys with a function": func(p *parts) {
		p.shops = func(s *sluice.Stream[event]) {
			s.KeyBy(func(e event) int64 { return int64(len(e.Shop)) }).
				Fold(sluice.NewState[int64, count]("shops").MigrateKeys(keyLength, func(a *count, b count) { a.N += b.N }), (*count).add)
		}
	},
	"key's meaning with a function": func(p *parts) {
		p.shops = func(s *sluice.Stream[event]) {
			s.KeyBy(upperShop).Meaning(1).Fold(sluice.NewState[string, count]("shops").MigrateKeys(upperKey, nil), (*count).add)
		}
	},
	"map's elements with a function": func(p *parts) {
		p.visits = func(k *sluice.Keyed[string, event]) {
			k.Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], event) {
				byShop := sluice.NewMapState[string, int64, count]("by_shop").MigrateKeys(elementLength, func(a *count, b count) { a.N += b.N })
				m, l := p.Map(byShop), p.List(sluice.NewListState[string, Part]("visits"))
				return func(_ *sluice.Context[string, string], e event) {
					m.Update(int64(len(e.Shop))).N++
					l.Append(Part{e.Cents})
				}
			}).Discard()
		}
	},
	"function that fails": func(p *parts) {
		p.cents = folded(sluice.NewState[string, countSecond]("cents").Migrate(sluice.Migrate(failing)), (*countSecond).add)
	},

	// What keeps some of the entries of a key.
	"greatest one":   keeping(sluice.NewSortedState[string, int64, count]("top", 1).Descending()),
	"greatest two":   keeping(sluice.NewSortedState[string, int64, count]("top", 2).Descending()),
	"greatest three": keeping(sluice.NewSortedState[string, int64, count]("top", 3).Descending()),
	"smallest two":   keeping(sluice.NewSortedState[string, int64, count]("top", 2)),

	// What begins empty.
	"state added": func(p *parts) {
		p.more = func(_ *sluice.Job, s *sluice.Stream[event]) {
			s.KeyBy(event.user).Fold(sluice.NewState[string, count]("fresh"), (*count).add).To("fresh", file.Upsert("out/fresh", rowOf))
		}
	},

	// What drops.
	"field removed": sumOf(func(s *struct {
		Core
		Sizes
		Standing
		Tags
		Shops
		Maybe
	}, e event) {
		each(e, &s.Core, &s.Sizes, &s.Standing, &s.Tags, &s.Shops, &s.Maybe)
	}),
	"nested field removed": sumOf(func(s *struct {
		Core
		Sizes
		Last
		Standing
		TagsLess
		Shops
		Maybe
	}, e event) {
		each(e, &s.Core, &s.Sizes, &s.Last, &s.Standing, &s.TagsLess, &s.Shops, &s.Maybe)
	}),
	"state removed":  func(p *parts) { p.cents = nil },
	"state replaced": func(p *parts) { p.cents = folded(sluice.NewState[string, count]("money"), (*count).addCents) },
	"narrowed": sumOf(func(s *struct {
		CoreNarrow
		Sizes
		Last
		Standing
		Tags
		Shops
		Maybe
	}, e event) {
		each(e, &s.CoreNarrow, &s.Sizes, &s.Last, &s.Standing, &s.Tags, &s.Shops, &s.Maybe)
	}),

	// What can't be carried over.
	"retyped": textSum(sluice.NewState[string, sumText]("sum")),
	"meaning": func(p *parts) {
		p.cents = folded(sluice.NewState[string, count]("cents").Meaning(1), (*count).addCents)
	},
	"key's meaning": func(p *parts) {
		p.shops = func(s *sluice.Stream[event]) {
			s.KeyBy(upperShop).Meaning(1).Fold(sluice.NewState[string, count]("shops"), (*count).add)
		}
	},
	"other keys": func(p *parts) {
		p.shops = func(s *sluice.Stream[event]) {
			s.KeyBy(func(e event) int64 { return int64(len(e.Shop)) }).Fold(sluice.NewState[int64, count]("shops"), (*count).add)
		}
	},
	"another kind": func(p *parts) {
		p.cents = func(k *sluice.Keyed[string, event]) {
			k.Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], event) {
				m := p.Map(sluice.NewMapState[string, string, count]("cents"))
				return func(_ *sluice.Context[string, string], e event) { m.Update(e.Shop).N += e.Cents }
			}).Discard()
		}
	},
	"map's elements": func(p *parts) {
		p.visits = func(k *sluice.Keyed[string, event]) {
			k.Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], event) {
				m, l := p.Map(sluice.NewMapState[string, int64, count]("by_shop")), p.List(sluice.NewListState[string, Part]("visits"))
				return func(_ *sluice.Context[string, string], e event) {
					m.Update(int64(len(e.Shop))).N++
					l.Append(Part{e.Cents})
				}
			}).Discard()
		}
	},
	"symbol removed": sumOf(func(s *struct {
		Core
		Sizes
		Last
		StandingLess
		Tags
		Shops
		Maybe
	}, e event) {
		each(e, &s.Core, &s.Sizes, &s.Last, &s.StandingLess, &s.Tags, &s.Shops, &s.Maybe)
	}),
	"made required": sumOf(func(s *struct {
		Core
		Sizes
		Last
		Standing
		Tags
		Shops
		MaybeRequired
	}, e event) {
		each(e, &s.Core, &s.Sizes, &s.Last, &s.Standing, &s.Tags, &s.Shops, &s.MaybeRequired)
	}),
	"functions crossed": func(p *parts) {
		p.cents = folded(sluice.NewState[string, count]("cents"), (*count).add)
		p.orders = func(k *sluice.Keyed[string, event]) {
			k.Fold(sluice.NewState[string, count]("orders"), (*count).addCents).To("orders", file.Upsert("out/orders", rowOf))
		}
	},
	"key functions exchanged": func(p *parts) {
		p.shops = func(s *sluice.Stream[event]) {
			s.KeyBy(event.user).Fold(sluice.NewState[string, count]("shops"), (*count).add)
		}
	},
	"sink's column removed":          ordersTo(func(_ string, c count) rowLess { return rowLess{} }),
	"sink's column retyped":          ordersTo(func(_ string, c count) rowText { return rowText{Orders: fmt.Sprint(c.N)} }),
	"sink's column renamed":          ordersTo(func(_ string, c count) rowNamed { return rowNamed{Count: c.N} }),
	"sink's nullable column removed": ordersTo(func(_ string, c count) rowOrders { return rowOrders{c.N} }),
	"source renamed": func(p *parts) {
		p.events = func(job *sluice.Job) *sluice.Stream[event] {
			return job.From("happenings", file.JSONLines[event]("in/*.jsonl"))
		}
	},
	"source of another form": func(p *parts) {
		p.events = func(job *sluice.Job) *sluice.Stream[event] { return job.From("events", file.CSV[event]("in/*.jsonl")) }
	},
}

func (c *count) addMoney(e event) { c.N += e.Cents }
func (e event) who() string       { return e.User }

// sumOf is the job with the state sum of another type.
func sumOf[S any](add func(*S, event)) func(p *parts) {
	return func(p *parts) { p.sum = folded(sluice.NewState[string, S]("sum"), add) }
}

// ordersTo is the job whose sink has other rows.
func ordersTo[R any](of func(string, count) R) func(p *parts) {
	return func(p *parts) {
		p.orders = func(k *sluice.Keyed[string, event]) {
			k.Fold(sluice.NewState[string, count]("orders"), (*count).add).To("orders", file.Upsert("out/orders", of))
		}
	}
}

func textSum(state sluice.State[string, sumText]) func(p *parts) {
	return func(p *parts) { p.sum = folded(state, (*sumText).add) }
}

// byNumber adds a state that is keyed by a number.
func byNumber[K comparable](key func(event) K) func(p *parts) {
	return func(p *parts) {
		p.more = func(_ *sluice.Job, s *sluice.Stream[event]) {
			s.KeyBy(key).Fold(sluice.NewState[K, count]("numbers"), (*count).add)
		}
	}
}

type sumText struct{ Cents string }

func (s *sumText) add(e event) {
	var n int64
	fmt.Sscan(s.Cents, &n)
	s.Cents = fmt.Sprint(n + e.Cents)
}

func sumToText(s Sum) (sumText, error) { return sumText{fmt.Sprint(s.Cents)}, nil }

type countSecond struct{ Euros float64 }

func (c *countSecond) add(e event) { c.Euros += float64(e.Cents) / 100 }

type countThird struct{ Words string }

func (c *countThird) add(event) { c.Words += "+" }

func secondCount(c count) (countSecond, error) { return countSecond{float64(c.N) / 100}, nil }
func thirdCount(c countSecond) (countThird, error) {
	return countThird{fmt.Sprintf("%.2f", c.Euros)}, nil
}
func tenfold(c count) (count, error) { return count{10 * c.N}, nil }
func failing(c count) (s countSecond, err error) {
	if c.N == 7 {
		return s, errors.New("seven can't be")
	}
	return secondCount(c)
}

type countBoth struct{ Orders, Cents int64 }

func (c *countBoth) add(e event) { c.Orders++; c.Cents += e.Cents }

func keyLength(old string, c count) iter.Seq2[int64, count] {
	return maps.All(map[int64]count{int64(len(old)): c})
}

func upperShop(e event) string { return strings.ToUpper(e.Shop) }

func upperKey(old string, c count) iter.Seq2[string, count] {
	return maps.All(map[string]count{strings.ToUpper(old): c})
}

func elementLength(key, element string, c count) iter.Seq2[sluice.KeyElement[string, int64], count] {
	return maps.All(map[sluice.KeyElement[string, int64]]count{{Key: key, Element: int64(len(element))}: c})
}

type (
	rowMore struct {
		Orders int64
		Last   *string
		Best   *int64
	}
	rowLess struct{ Last *string }
	rowText struct {
		Orders string
		Last   *string
	}
	rowNamed struct {
		Count int64
		Last  *string
	}
	rowOrders struct{ Orders int64 }
)

// ancestorSum lacks what the base has.
func ancestorSum(k *sluice.Keyed[string, event]) {
	type sumAncestor struct {
		Shops
		Core
		Sizes
		Last
		Standing
		Tags
	}
	k.Fold(sluice.NewState[string, sumAncestor]("sum"), func(s *sumAncestor, e event) {
		each(e, &s.Shops, &s.Core, &s.Sizes, &s.Last, &s.Standing, &s.Tags)
	})
}

type countText struct{ Text string }

func textCount(c countText) (count, error) {
	var n int64
	_, err := fmt.Sscan(c.Text, &n)
	return count{n}, err
}

func (c *countText) add(e event) {
	var n int64
	fmt.Sscan(c.Text, &n)
	c.Text = fmt.Sprint(n + e.Cents)
}

type countSmall struct{ N int16 }

func (c *countSmall) add(event) { c.N++ }

// Pieces of the state sum, each with one change.
type (
	TagsMore struct {
		Tags []struct {
			Tag
			Gift bool
		}
	}
	ShopsMore struct {
		Shops map[string]struct {
			Part
			Open bool
		}
	}
	SizesWide struct {
		Small int64
		Part  float64
	}
	LastNullable struct{ Note *string }
	LastBytes    struct{ Note []byte }
	StandingMore struct{ Level levelMore }
	StandingLess struct{ Level levelLess }
	CoreAlias    struct {
		Orders int64
		Money  int64 `avro:"Money,alias=Cents"`
	}
	CoreSpare struct {
		Orders int64
		Cents  int64 `avro:"Cents,alias=Spare"`
	}
	CoreNarrow struct {
		Orders int64
		Cents  int32
	}
	TagsLess struct {
		Tags []struct{ Cents int64 }
	}
	MaybeRequired struct{ Maybe int64 }
)

type levelMore string

func (levelMore) Symbols() []string { return []string{"low", "middle", "high"} }

type levelLess string

func (levelLess) Symbols() []string { return []string{"high"} }

func (p *TagsMore) add(e event) {
	p.Tags = append(p.Tags, struct {
		Tag
		Gift bool
	}{Tag: Tag{e.Note, e.Cents}})
}

func (p *ShopsMore) add(e event) {
	if p.Shops == nil {
		p.Shops = map[string]struct {
			Part
			Open bool
		}{}
	}
	s := p.Shops[e.Shop]
	s.Cents += e.Cents
	p.Shops[e.Shop] = s
}

func (p *SizesWide) add(event)      { p.Small++; p.Part += 0.5 }
func (p *LastNullable) add(e event) { p.Note = &e.Note }
func (p *LastBytes) add(e event)    { p.Note = []byte(e.Note) }
func (p *StandingMore) add(e event) {
	p.Level = "low"
	if e.Cents > 5 {
		p.Level = "high"
	}
}
func (p *StandingLess) add(event)    { p.Level = "high" }
func (p *CoreAlias) add(e event)     { p.Orders++; p.Money += e.Cents }
func (p *CoreSpare) add(e event)     { p.Orders++; p.Cents += e.Cents }
func (p *CoreNarrow) add(e event)    { p.Orders++; p.Cents += int32(e.Cents) }
func (p *TagsLess) add(e event)      { p.Tags = append(p.Tags, struct{ Cents int64 }{e.Cents}) }
func (p *MaybeRequired) add(e event) { p.Maybe = e.Cents }

// keeping adds a state of users' sorted cents.
func keeping(top sluice.SortedState[string, int64, count]) func(p *parts) {
	return func(p *parts) {
		p.more = func(_ *sluice.Job, s *sluice.Stream[event]) {
			s.KeyBy(event.user).Process(func(p *sluice.Setup[string, string]) func(*sluice.Context[string, string], event) {
				top := p.Sorted(top)
				return func(_ *sluice.Context[string, string], e event) { top.Put(e.Cents, count{e.Cents}) }
			}).Discard()
		}
	}
}
