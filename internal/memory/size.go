package memory

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are those of sizes, each 1024 times the one before.
var units = [...]string{"B", "KiB", "MiB", "GiB", "TiB"}

// ParseSize reads a size as GOMEMLIMIT has it: a whole number of bytes above 0,
// or one with a unit of B, KiB, MiB, GiB or TiB, such as 512MiB.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "BKMGTi")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || digits[0] == '+' {
		return 0, fmt.Errorf("%q is no size: use a whole number of bytes, or one of KiB, MiB, GiB or TiB such as 512MiB", text)
	}
	unit := text[len(digits):]
	for i, u := range units {
		if unit != u && (unit != "" || i > 0) {
			continue
		}
		if n > math.MaxInt64>>(10*i) {
			return 0, fmt.Errorf("%q is more than any memory: use a size such as 512MiB", text)
		}
		return n << (10 * i), nil
	}
	return 0, fmt.Errorf("%q has a unit that is not known: use KiB, MiB, GiB or TiB, as in 512MiB", text)
}

// size writes a number of bytes as people read it.
func size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 1
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// sum adds sizes; what is more than a number can hold stays at the most.
func sum(a, b int64) int64 {
	if a, b = max(a, 0), max(b, 0); a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
