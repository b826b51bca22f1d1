package operate

import (
	"encoding/json/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// offDashboard are the metrics that the dashboard doesn't show, each with the
// reason.
var offDashboard = map[string]string{
	"sluice_watermark_seconds":          "how far it is behind tells more",
	"sluice_operator_watermark_seconds": "how far it is behind tells more",
}

var (
	quoted     = regexp.MustCompile(`"(\\.|[^"\\])*"`)
	matchers   = regexp.MustCompile(`\{[^}]*\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)`)
	grouping   = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	ranges     = regexp.MustCompile(`\[[^\]]*\]`)
	offsets    = regexp.MustCompile(`\boffset\s+\w+`)
	identifier = regexp.MustCompile(`\b[a-zA-Z_:][\w:]*(\s*\()?`)
	word       = regexp.MustCompile(`\w+`)
)

// usesOf takes a PromQL expression apart, as far as the names in it go.
func usesOf(expr string) (metrics, labels []string) {
	expr = quoted.ReplaceAllString(expr, `""`)
	for _, m := range matchers.FindAllString(expr, -1) {
		for _, l := range matcher.FindAllStringSubmatch(m, -1) {
			labels = append(labels, l[1])
		}
	}
	expr = matchers.ReplaceAllString(expr, " ")
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		labels = append(labels, word.FindAllString(g[2], -1)...)
	}
	for _, gone := range []*regexp.Regexp{grouping, ranges, offsets} {
		expr = gone.ReplaceAllString(expr, " ")
	}
	for _, name := range identifier.FindAllString(expr, -1) {
		if !strings.HasSuffix(name, "(") && !slices.Contains([]string{"by", "and", "or", "unless", "bool", "atan2"}, name) {
			metrics = append(metrics, name)
		}
	}
	return metrics, labels
}

func TestUsesOf(t *testing.T) {
	for expr, want := range map[string][2]string{
		`rate(a_total{x="b(c{",y!~"d"}[5m]) > 0.5`:                               {"a_total", "x y"},
		`sum by (le, z) (rate(a_bucket[$__rate_interval]))`:                      {"a_bucket", "le z"},
		`a / on (i) group_left (j) b{k=~"$job"} and c unless count(d offset 1h)`: {"a b c d", "k i j"},
		`topk(10, deriv(a:b[5m])) * 1e3`:                                         {"a:b", ""},
	} {
		metrics, labels := usesOf(expr)
		if got := [2]string{strings.Join(metrics, " "), strings.Join(labels, " ")}; got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// exposed are the names that a busy job really shows, as they are written in
// expressions, each with its labels.
func exposed(t *testing.T) map[string][]string {
	t.Helper()
	b := busy()
	all := map[string][]string{}
	// The labels that Prometheus adds by itself.
	added := []string{"instance"}
	gathered, err := NewRegistry("spend", b).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range gathered {
		labels := slices.Clone(added)
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		all[f.GetName()] = labels
		if f.GetMetric()[0].GetHistogram() != nil {
			delete(all, f.GetName())
			all[f.GetName()+"_bucket"] = append(slices.Clone(labels), "le")
			all[f.GetName()+"_sum"], all[f.GetName()+"_count"] = labels, labels
		}
	}
	return all
}

// checkExpression holds an expression against what is exposed, and returns the
// metrics that it uses.
func checkExpression(t *testing.T, where, expr string, all map[string][]string) []string {
	t.Helper()
	metrics, labels := usesOf(expr)
	var known []string
	for _, m := range metrics {
		if all[m] == nil {
			t.Errorf("%s: no job exposes %s", where, m)
		}
		known = append(known, all[m]...)
	}
	for _, l := range labels {
		if !slices.Contains(known, l) {
			t.Errorf("%s: no metric in %s has the label %s", where, expr, l)
		}
	}
	if len(metrics) == 0 {
		t.Errorf("%s: no metric in %q", where, expr)
	}
	return metrics
}

// dashboard is what the tests read of Grafana's format.
type dashboard struct {
	Panels []struct {
		ID          int    `json:"id"`
		Type        string `json:"type"`
		Title       string `json:"title"`
		Description string `json:"description"`
		GridPos     struct {
			H int `json:"h"`
			W int `json:"w"`
			X int `json:"x"`
			Y int `json:"y"`
		} `json:"gridPos"`
		Targets []struct {
			Expr         string `json:"expr"`
			LegendFormat string `json:"legendFormat"`
		} `json:"targets"`
	} `json:"panels"`
	Annotations struct {
		List []struct {
			Expr string `json:"expr"`
		} `json:"list"`
	} `json:"annotations"`
	Templating struct {
		List []struct {
			Name string `json:"name"`
		} `json:"list"`
	} `json:"templating"`
}

// Every expression of the dashboard names what a job exposes, and what a job
// exposes is on the dashboard.
func TestDashboard(t *testing.T) {
	data, err := os.ReadFile("../../deploy/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	all := exposed(t)
	used, ids := map[string]bool{}, map[int]bool{}
	note := func(where, expr string) {
		for _, m := range checkExpression(t, where, expr, all) {
			used[m] = true
		}
	}
	for _, a := range d.Annotations.List {
		note("an annotation", a.Expr)
	}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.W < 1 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: its id, title or place", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %q explains or shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			note("panel "+p.Title, target.Expr)
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if metrics, _ := usesOf(target.Expr); !slices.Contains(all[metrics[0]], l[1]) {
					t.Errorf("panel %s: the legend has the label %s, which %s has not", p.Title, l[1], metrics[0])
				}
			}
		}
	}
	for _, f := range families() {
		shown := used[f.name] || used[f.name+"_bucket"]
		if reason, off := offDashboard[f.name]; shown == off || off && reason == "" {
			t.Errorf("%s: on the dashboard is %v, in the table of exceptions %v", f.name, shown, off)
		}
	}
}

// The board that these tests read has something for every metric.
func TestBusyShowsAll(t *testing.T) {
	all := exposed(t)
	for _, f := range families() {
		if all[f.name] == nil && all[f.name+"_bucket"] == nil {
			t.Errorf("the test's board has nothing for %s", f.name)
		}
		for _, l := range f.labels {
			if !slices.Contains(append(all[f.name], all[f.name+"_bucket"]...), l) {
				t.Errorf("%s has no label %s", f.name, l)
			}
		}
	}
}
