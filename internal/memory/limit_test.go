package memory

import (
	"testing"
	"testing/fstest"
)

func TestFind(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name    string
		files   map[string]string
		golimit string
		limit   int64
		source  string
	}{
		{name: "no Linux"},
		{name: "machine", files: map[string]string{
			"proc/meminfo": "MemTotal:        2048 kB\nMemFree:          100 kB\n",
		}, limit: 2 * mib, source: FromMachine},
		{name: "version 2", files: map[string]string{
			"proc/self/cgroup":                                  "0::/system.slice/job.service\n",
			"sys/fs/cgroup/system.slice/memory.max":             "max\n",
			"sys/fs/cgroup/system.slice/job.service/memory.max": "1048576\n",
			"proc/meminfo":                                      "MemTotal: 2048 kB\n",
		}, limit: 1 * mib, source: FromCgroup},
		{name: "version 2, a parent's", files: map[string]string{
			"proc/self/cgroup":             "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max":   "3145728\n",
			"sys/fs/cgroup/a/b/memory.max": "5242880\n",
			"proc/meminfo":                 "MemTotal: 9999999 kB\n",
		}, limit: 3 * mib, source: FromCgroup},
		{name: "version 2, in a container", files: map[string]string{
			"proc/self/cgroup":         "0::/../../kubepods/pod7\n", // the host's
			"sys/fs/cgroup/memory.max": "4194304\n",
		}, limit: 4 * mib, source: FromCgroup},
		{name: "version 1", files: map[string]string{
			"proc/self/cgroup": "9:cpu,cpuacct:/x\n5:memory:/docker/7\n",
			"sys/fs/cgroup/memory/docker/7/memory.limit_in_bytes": "2097152\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n",
		}, limit: 2 * mib, source: FromCgroup1},
		{name: "version 1, none", files: map[string]string{
			"proc/self/cgroup":                           "5:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}},
		{name: "Go's alone", golimit: "3MiB", limit: 3 * mib, source: FromGo},
		{name: "Go's is less", golimit: "1024KiB", files: map[string]string{
			"proc/meminfo": "MemTotal: 2048 kB\n",
		}, limit: 1 * mib, source: FromGo},
		{name: "Go's is more", golimit: "1GiB", files: map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "5242880\n",
		}, limit: 5 * mib, source: FromCgroup},
		{name: "Go's is off", golimit: "off", files: map[string]string{
			"proc/meminfo": "MemTotal: 1024 kB\n",
		}, limit: 1 * mib, source: FromMachine},
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
			getenv := func(name string) string { return map[string]string{"GOMEMLIMIT": test.golimit}[name] }
			limit, ok := Find(root, getenv)
			want := Limit{test.limit, test.source}
			if ok != (test.source != "") || limit != want {
				t.Errorf("found %v, %v; want %v", limit, ok, want)
			}
		})
	}
}
