package cli

import (
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name  string
		files map[string]string
		limit int64
		ok    bool
	}{
		{name: "no Linux"},
		{name: "machine", files: map[string]string{
			"proc/meminfo": "MemTotal:        2048 kB\nMemFree:          100 kB\n",
		}, limit: 2 * mib, ok: true},
		{name: "version 2", files: map[string]string{
			"proc/self/cgroup":                                  "0::/system.slice/job.service\n",
			"sys/fs/cgroup/system.slice/memory.max":             "max\n",
			"sys/fs/cgroup/system.slice/job.service/memory.max": "1048576\n",
			"proc/meminfo":                                      "MemTotal: 2048 kB\n",
		}, limit: 1 * mib, ok: true},
		{name: "version 2, a parent's", files: map[string]string{
			"proc/self/cgroup":             "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max":   "3145728\n",
			"sys/fs/cgroup/a/b/memory.max": "5242880\n",
			"proc/meminfo":                 "MemTotal: 9999999 kB\n",
		}, limit: 3 * mib, ok: true},
		{name: "version 2, in a container", files: map[string]string{
			"proc/self/cgroup":         "0::/../../kubepods/pod7\n", // the host's
			"sys/fs/cgroup/memory.max": "4194304\n",
		}, limit: 4 * mib, ok: true},
		{name: "version 1", files: map[string]string{
			"proc/self/cgroup": "9:cpu,cpuacct:/x\n5:memory:/docker/7\n",
			"sys/fs/cgroup/memory/docker/7/memory.limit_in_bytes": "2097152\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n",
		}, limit: 2 * mib, ok: true},
		{name: "version 1, none", files: map[string]string{
			"proc/self/cgroup":                           "5:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}},
		{name: "nonsense", files: map[string]string{
			"proc/self/cgroup":         "0:\n:::\n0::\n",
			"sys/fs/cgroup/memory.max": "-1\n",
			"proc/meminfo":             "MemTotal: much kB\n",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, content := range test.files {
				root[name] = &fstest.MapFile{Data: []byte(content)}
			}
			limit, ok := memoryLimit(root)
			if ok != test.ok || ok && limit != test.limit {
				t.Errorf("%d, %v; want %d, %v", limit, ok, test.limit, test.ok)
			}
		})
	}
}
