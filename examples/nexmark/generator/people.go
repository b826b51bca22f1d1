package generator

import "strconv"

// There are few of each, so that queries find something among few events.
var (
	firstNames = []string{"Ada", "Bruno", "Clara", "Dmitri", "Elif", "Farid", "Greta", "Hana", "Ivo", "Jun", "Kofi"}
	lastNames  = []string{"Amsel", "Brandt", "Costa", "Dahl", "Eriksen", "Fuchs", "Garcia", "Horvat", "Ito"}
	cities     = []string{"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"}
	states     = []string{"AZ", "CA", "ID", "OR", "WA", "WY"}
)

func oneOf(r *random, all []string) string { return all[r.below(int64(len(all)))] }

func (g *Generator) person(r *random, place int64) *Person {
	p := &Person{
		ID:         firstID + newestPerson(place),
		Name:       oneOf(r, firstNames) + " " + oneOf(r, lastNames),
		Email:      email(r),
		CreditCard: creditCard(r),
		City:       oneOf(r, cities),
		State:      oneOf(r, states),
		DateTime:   g.c.time(place),
	}
	p.Extra = r.extra(2*8+len(p.Name)+len(p.Email)+len(p.CreditCard)+len(p.City)+len(p.State), g.c.PersonBytes)
	return p
}

func email(r *random) string {
	b := r.word(make([]byte, 0, 16), 7)
	b = r.word(append(b, '@'), 5)
	return string(append(b, ".com"...))
}

// creditCard is four times four digits.
func creditCard(r *random) string {
	b := make([]byte, 0, 4*5)
	for range 4 {
		if len(b) > 0 {
			b = append(b, ' ')
		}
		// 1 before the digits keeps the zeros among them.
		at := len(b)
		b = strconv.AppendInt(b, 1_0000+r.below(1_0000), 10)
		b = append(b[:at], b[at+1:]...)
	}
	return string(b)
}
