package main

import (
	"context"
	"fmt"

	"github.com/sluicestream/sluice/connector"
)

// hangs is a sink that does not come back from a delivery, or only when it is
// told to.
type hangs struct {
	connector.StreamSink[Receipt]
	obeys bool
}

// Open implements [connector.Sink].
func (h hangs) Open(ctx context.Context, o connector.Opening, key connector.RecordKey) (connector.Target, error) {
	target, err := h.StreamSink.Open(ctx, o, key)
	return hanging{target, h.obeys}, err
}

type hanging struct {
	connector.Target
	obeys bool
}

// Deliver implements [connector.Target].
func (h hanging) Deliver(ctx context.Context, _ *connector.Delivery) (connector.Verdict, *connector.SinkRecord, error) {
	fmt.Println("hanging")
	if h.obeys {
		<-ctx.Done()
		return connector.Disagree, nil, ctx.Err()
	}
	select {}
}
