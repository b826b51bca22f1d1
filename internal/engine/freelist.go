package engine

// freeList keeps up to a fixed number of used things for being used again.
// Unlike a sync.Pool it is not emptied by the garbage collector, so that a
// steady flow allocates nothing.
type freeList[T any] struct{ c chan T }

func newFreeList[T any](size int) freeList[T] { return freeList[T]{make(chan T, size)} }

func (f freeList[T]) get(make func() T) T {
	select {
	case v := <-f.c:
		return v
	default:
		return make()
	}
}

func (f freeList[T]) put(v T) {
	select {
	case f.c <- v:
	default:
	}
}
