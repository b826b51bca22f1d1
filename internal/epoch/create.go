package epoch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicestream/sluice/env"
	"github.com/sluicestream/sluice/store"
)

// A doubtful create is repeated, with waits that double, for about half a
// minute: longer than stores take to fail over, shorter than people wait.
const (
	createTries = 12
	firstWait   = 20 * time.Millisecond
	longestWait = 5 * time.Second
)

// create carries out rule S1 for one name and one content. It returns Mine or
// Theirs, with what the name holds (nil if it is free again). After an error
// that matches [store.ErrUnknown] the object may still appear.
func (j *Job) create(ctx context.Context, path string, data []byte) (Outcome, []byte, error) {
	var doubt error
	for try := range createTries {
		if try > 0 {
			if err := j.wait(ctx, try); err != nil {
				return 0, nil, stillUnknown(doubt, err)
			}
		}
		answer, words, err := answerOf(j.store.Create(ctx, j.Object(path), data))
		if err != nil {
			return 0, nil, stillUnknown(doubt, fmt.Errorf("%s: %w", j.name, err))
		}
		outcome, found := DecideCreate(answer, data, nil), data
		if outcome == Look {
			outcome, found, words = j.look(ctx, path, data)
		}
		if outcome != Again {
			return outcome, found, nil
		}
		doubt = words
	}
	return 0, nil, fmt.Errorf("%s: %s was tried %d times, and it may or may not be there; starting again is safe: %w", j.name, path, createTries, doubt)
}

// look reads a name that is taken, and decides again.
func (j *Job) look(ctx context.Context, path string, tried []byte) (Outcome, []byte, error) {
	found, err := j.store.Read(ctx, j.Object(path), MaxObject)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Theirs, nil, nil
	case err != nil:
		return Again, nil, fmt.Errorf("%w: %w", store.ErrUnknown, err)
	case len(found) == 0:
		return Theirs, []byte{}, nil // DecideCreate would take nil for unread
	}
	return DecideCreate(Taken, tried, found), found, nil
}

// answerOf sorts a store's answer to a create; doubt is its own words for one
// that leaves a doubt, and err means that nothing was created.
func answerOf(answer error) (a Answer, doubt, err error) {
	switch {
	case answer == nil:
		return Created, nil, nil
	case errors.Is(answer, store.ErrExists):
		return Taken, nil, nil
	case errors.Is(answer, store.ErrUnknown):
		return Doubtful, answer, nil
	}
	return 0, nil, answer
}

// stillUnknown keeps an earlier doubt in an error that would read as if there
// were none.
func stillUnknown(doubt, err error) error {
	if doubt == nil {
		return err
	}
	return fmt.Errorf("%w (after: %w)", err, doubt)
}

// wait pauses before a try, by the environment's clock.
func (j *Job) wait(ctx context.Context, try int) error {
	return env.Pause(ctx, j.env.Clock, min(firstWait<<(try-1), longestWait))
}

// makeRecord creates a record that is the same whoever makes it, or that is
// whoever's made it first.
func (j *Job) makeRecord(ctx context.Context, path string, encode func() ([]byte, error)) error {
	if exists, err := j.store.Exists(ctx, j.Object(path)); err != nil || exists {
		return err
	}
	data, err := encode()
	if err != nil {
		return fmt.Errorf("%s: write %s: %w", j.name, path, err)
	}
	_, _, err = j.create(ctx, path, data)
	return err
}
