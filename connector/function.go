package connector

import (
	"reflect"
	"runtime"
	"strings"
)

// FunctionName is the name of a named function or method, for [Rows] and
// [TableRows], and empty for a function that has none: main.row, main.Order.User.
func FunctionName[F any](f F) string {
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	name = name[strings.LastIndexByte(name, '/')+1:]
	for part := range strings.SplitSeq(name, ".") {
		if n, ok := strings.CutPrefix(part, "func"); ok && n != "" && strings.Trim(n, "0123456789") == "" {
			return "" // the compiler made the name up: main.job.func1
		}
	}
	return strings.TrimSuffix(name, "-fm")
}
