package codec

import (
	"context"
	"time"
)

// answerWithin bounds how long a record waits for a registry, in all: whoever
// decodes or encodes it can't be told to stop, and a job that is to stop ends its
// epoch first.
const answerWithin = 10 * time.Second

// waiting is the context of a record that waits.
func waiting() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), answerWithin)
}
