package codec_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/connector"
)

// silent is a registry that never answers.
type silent struct{}

func (silent) Schema(ctx context.Context, _ uint32) (*codec.Schema, error) {
	<-ctx.Done()
	return nil, errors.Join(ctx.Err(), connector.ErrUnavailable)
}

func (silent) Enroll(ctx context.Context, _ string, _ *codec.Schema, _ bool) (uint32, error) {
	<-ctx.Done()
	return 0, errors.Join(ctx.Err(), connector.ErrUnavailable)
}

// TestRecordsWaitBounded: nobody can tell a decoder or an encoder to stop, so
// that neither waits longer than a stop may take.
func TestRecordsWaitBounded(t *testing.T) {
	c := codec.Avro[item](codec.Record("o"), codec.Registered(silent{}, codec.ByRecord()))
	for name, wait := range map[string]func() error{
		"decoder": func() error { var o item; return c.NewDecoder()([]byte("\x00\x00\x00\x00\x07"), &o) },
		"encoder": func() error { _, err := c.NewEncoder()(nil, &item{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				err := wait()
				if waited := time.Since(begin); !errors.Is(err, connector.ErrUnavailable) || waited != 10*time.Second {
					t.Errorf("after %v: %v, expected an end after 10 s that is no record's fault", waited, err)
				}
			})
		})
	}
}
