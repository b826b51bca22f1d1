package tabular

import (
	"encoding/binary"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func appendLong(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }
