package postgres

import (
	"fmt"

	"github.com/sluicestream/sluice/connector"
)

// half is the half of a sink of this package that knows no types of Go.
func (s *sink) half() *sink { return s }

// Rivals implements [connector.RivalSink]: a view shows the rows of one sink.
func (s *sink) Rivals(other connector.Sink) error {
	o, ok := other.(interface{ half() *sink })
	if !ok || s.settings.view == "" || s.viewName() != o.half().viewName() || !s.sameDatabase(o.half()) {
		return nil
	}
	return fmt.Errorf("postgres.View(%q): both show their rows under this name; one view has the rows of one table", s.settings.view)
}

// sameDatabase tells whether two sinks write to the same database, as far as their
// addresses tell.
func (s *sink) sameDatabase(other *sink) bool {
	if s.settings.database == other.settings.database {
		return true
	}
	one, err := newDatabase(&s.settings, connector.Opening{})
	if err != nil {
		return false
	}
	two, err := newDatabase(&other.settings, connector.Opening{})
	if err != nil {
		return false
	}
	return one.config.Host == two.config.Host && one.config.Port == two.config.Port && one.config.Database == two.config.Database
}
