package operate

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// parseUnit reads a unit file: by section and name, the values.
func parseUnit(text string) (map[string]map[string][]string, error) {
	unit := map[string]map[string][]string{}
	section := ""
	for i, line := range strings.Split(text, "\n") {
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && line[len(line)-1] == ']':
			section = line[1 : len(line)-1]
			if unit[section] != nil {
				return nil, fmt.Errorf("line %d: a second [%s]", i+1, section)
			}
			unit[section] = map[string][]string{}
		default:
			name, value, ok := strings.Cut(line, "=")
			if !ok || section == "" || name != strings.TrimSpace(name) || value != strings.TrimSpace(value) {
				return nil, fmt.Errorf("line %d: %s", i+1, line)
			}
			unit[section][name] = append(unit[section][name], value)
		}
	}
	return unit, nil
}

func TestUnit(t *testing.T) {
	unit, err := parseUnit(read(t, "deploy/spend.service"))
	if err != nil {
		t.Fatal(err)
	}
	if sections := slices.Sorted(maps.Keys(unit)); !slices.Equal(sections, []string{"Install", "Service", "Unit"}) {
		t.Fatalf("sections %q", sections)
	}
	service := unit["Service"]
	for name, want := range map[string]string{"Restart": "on-failure", "ProtectSystem": "strict", "DynamicUser": "yes", "NoNewPrivileges": "yes", "KillSignal": "SIGTERM"} {
		if !slices.Equal(service[name], []string{want}) {
			t.Errorf("%s=%q, want %s", name, service[name], want)
		}
	}
	environment := map[string]string{}
	for _, e := range service["Environment"] {
		name, value, _ := strings.Cut(e, "=")
		environment[name] = value
	}
	if !strings.HasPrefix(environment["SLUICE_STORE"], "%S/"+service["StateDirectory"][0]+"/") {
		t.Errorf("the store, %q, is not in the folder that the unit may write to", environment["SLUICE_STORE"])
	}
	grace, err1 := time.ParseDuration(environment["SLUICE_GRACE"])
	stop, err2 := time.ParseDuration(service["TimeoutStopSec"][0])
	if err1 != nil || err2 != nil || stop <= grace {
		t.Errorf("SIGKILL comes after %v (%v), deliveries have %v (%v)", stop, err2, grace, err1)
	}
}

// systemd itself finds nothing to say about the unit.
func TestUnitBySystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("systemd is not here to read the unit: %v", err)
	}
	self, err := os.Executable() // it wants a program that is there
	if err != nil {
		t.Fatal(err)
	}
	unit := strings.ReplaceAll(read(t, "deploy/spend.service"), "/usr/local/bin/spend", self)
	file := filepath.Join(t.TempDir(), "spend.service")
	if err := os.WriteFile(file, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || strings.Contains(string(out), "spend.service") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What the unit doesn't restart after is what the table of exit codes says.
func TestUnitAndExitCodes(t *testing.T) {
	unit, err := parseUnit(read(t, "deploy/spend.service"))
	if err != nil {
		t.Fatal(err)
	}
	stays := map[string]bool{"0": true}
	for _, name := range []string{"RestartPreventExitStatus", "SuccessExitStatus"} {
		for _, code := range strings.Fields(unit["Service"][name][0]) {
			stays[code] = true
		}
	}
	for code, row := range exitTable(t) {
		if row[2] == notRun {
			continue
		}
		if again := row[2] == "yes"; again == stays[strconv.Itoa(code)] {
			t.Errorf("code %d: the table says restart: %s, and the unit something else", code, row[2])
		}
	}
}

func TestKubernetes(t *testing.T) {
	documents, err := parseYAML(read(t, "deploy/kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(documents) != 2 || !documents[0].is("kind", "PersistentVolumeClaim") || !documents[1].is("kind", "Deployment") {
		t.Fatal("a claim and a deployment are expected")
	}
	claim, deployment := documents[0], documents[1]
	pod := deployment.at("spec.template.spec")
	container := pod.at("containers.0")
	for path, want := range map[string]string{
		"terminationGracePeriodSeconds":                         "60",
		"securityContext.runAsNonRoot":                          "true",
		"containers.0.securityContext.readOnlyRootFilesystem":   "true",
		"containers.0.securityContext.allowPrivilegeEscalation": "false",
		"containers.0.securityContext.capabilities.drop.0":      "ALL",
		"volumes.0.persistentVolumeClaim.claimName":             claim.at("metadata.name").text,
		"containers.0.volumeMounts.0.name":                      pod.at("volumes.0.name").text,
		"containers.0.resources.limits.memory":                  container.at("resources.requests.memory").text,
		"containers.0.ports.0.containerPort":                    deployment.at("spec.template.metadata.annotations").keys["prometheus.io/port"].text,
		"containers.0.readinessProbe.httpGet.port":              container.at("ports.0.name").text,
		"containers.0.livenessProbe.httpGet.port":               container.at("ports.0.name").text,
		"containers.0.startupProbe.httpGet.port":                container.at("ports.0.name").text,
		"containers.0.args.2":                                   "--listen=:" + container.at("ports.0.containerPort").text,
		"containers.0.args.0":                                   "run",
		"containers.0.args.3":                                   "--on-superseded=wait",
		"containers.0.env.0.name":                               "SLUICE_STORE",
		"containers.0.readinessProbe.httpGet.path":              "/readyz",
		"containers.0.livenessProbe.httpGet.path":               "/healthz",
	} {
		if !pod.is(path, want) {
			t.Errorf("%s is %+v, want %s", path, pod.at(path), want)
		}
	}
	if !deployment.is("spec.template.metadata.labels.app", deployment.at("spec.selector.matchLabels.app").text) {
		t.Error("the selector doesn't match the pod")
	}
	if store := container.at("env.0.value").text; !strings.HasPrefix(store, container.at("volumeMounts.0.mountPath").text+"/") {
		t.Errorf("the store, %s, is not on the volume", store)
	}
	grace, err := time.ParseDuration(strings.TrimPrefix(container.at("args.1").text, "--grace="))
	if seconds, _ := strconv.Atoi(pod.at("terminationGracePeriodSeconds").text); err != nil || float64(seconds) <= grace.Seconds() {
		t.Errorf("SIGKILL comes after %d s, deliveries have %v (%v)", seconds, grace, err)
	}
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		checkPath(t, probe, container.at(probe+".httpGet.path").text)
	}
	checkPath(t, "the scrape annotation", deployment.at("spec.template.metadata.annotations").keys["prometheus.io/path"].text)
}

// checkPath asks the real handler, of a job that runs.
func checkPath(t *testing.T, what, path string) {
	t.Helper()
	b := busy()
	w := httptest.NewRecorder()
	Service{Job: "spend", Board: b, Metrics: NewRegistry("spend", b)}.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	if w.Code != 200 {
		t.Errorf("%s: %s answers %d", what, path, w.Code)
	}
}

func TestAlerts(t *testing.T) {
	documents, err := parseYAML(read(t, "deploy/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all, seen := exposed(t), map[string]bool{}
	rules := documents[0].at("groups.0.rules").items
	for _, rule := range rules {
		name := rule.at("alert").text
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
		checkExpression(t, name, rule.at("expr").text, all)
		if !slices.Contains([]string{"page", "warn", "info"}, rule.at("labels.severity").text) {
			t.Errorf("%s: severity %s", name, rule.at("labels.severity").text)
		}
		if !strings.HasPrefix(rule.at("annotations.summary").text, "{{ $labels.job_name }}: ") {
			t.Errorf("%s: the summary doesn't name the job", name)
		}
		if f := rule.at("for"); f != nil {
			if _, err := time.ParseDuration(f.text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if len(rules) < 10 {
		t.Errorf("%d alerts", len(rules))
	}
}
