package memory

import "os"

// OfProcess is the limit of this process, as [Find] finds it; its Bytes are 0 if
// none is known.
func OfProcess() Limit {
	limit, _ := Find(os.DirFS("/"), os.Getenv)
	return limit
}
