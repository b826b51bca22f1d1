package fsck

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/sluicestream/sluice/internal/epoch"
	"github.com/sluicestream/sluice/store"
)

// The end of every object, as the format has it: the sha256 of all before it.
const (
	sumBegin = `,"sum":"`
	sumEnd   = "\"}\n"
	hashLen  = 64
)

// seal adds the sum, so that what is behind it is reached.
func seal(body []byte) []byte {
	return fmt.Appendf(bytes.Clone(body), "%s%s%s", sumBegin, epoch.Hash(body), sumEnd)
}

// FuzzCheck puts what somebody may have written under the names of a manifest and
// of records: a check ends with a report, whatever it is.
func FuzzCheck(f *testing.F) {
	whole := epoch.Manifest{
		Format: 1, JobID: "a", Branch: "main", Task: "0.0", Kind: epoch.Data,
		State: map[string]epoch.StateEntry{"s": {Key: `"string"`, Value: `"long"`, Segments: []epoch.Segment{{Path: epoch.DataPath("main", "0.0", 0, "0a", 1, "s"), Bytes: 1 << 62}}}},
		Sinks: map[string]epoch.SinkState{"out": {Outbox: []epoch.Object{{Path: epoch.DataPath("main", "0.0", 0, "0a", 2, "outbox.out"), Bytes: 4}}}},
	}
	data, err := whole.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[:len(data)-len(sumBegin)-hashLen-len(sumEnd)], []byte("Obj\x01"))
	f.Add([]byte(`{"format":1,"job_id":"a","n":18446744073709551615`), []byte{})
	f.Add([]byte(`{"format":1,"job_id":"a","branch":"main","task":"0.0","epoch":0,"kind":"data","request":18446744073709551615`), []byte(nil))
	f.Add([]byte(`{"format":99`), []byte("x"))
	f.Fuzz(func(t *testing.T, object, file []byte) {
		s := store.NewMemory()
		for _, path := range []string{
			epoch.ManifestPath("main", "0.0", 0), epoch.LivePath(0), epoch.BranchPath("main"), epoch.HeartbeatPath("main", "0.0"),
			epoch.PinPath("x-1"), epoch.FloorPath("main", "0.0", 0), epoch.VersionPath("00"), epoch.JobPath,
		} {
			if err := s.Create(context.Background(), "job/"+path, seal(object)); err != nil {
				t.Fatal(err)
			}
		}
		for seq, name := range []string{"", "s", "outbox.out"} {
			if name == "" {
				continue
			}
			if err := s.Create(context.Background(), "job/"+epoch.DataPath("main", "0.0", 0, "0a", uint64(seq), name), file); err != nil {
				t.Fatal(err)
			}
		}
		report, err := Check(context.Background(), s, "job", Options{Readers: 1})
		if err == nil && report.Whole() {
			t.Errorf("one object can't be eight: %+v", report)
		}
	})
}
