package check

import (
	"os"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The chart installs the alerts and the dashboard as the files have them, with
// no value but that they are wanted.
func TestMonitoring(t *testing.T) {
	on := map[string]any{"enabled": true}
	manifests, err := render(loadChart(t), map[string]any{"prometheusRule": on, "dashboard": on})
	if err != nil {
		t.Fatal(err)
	}
	validate(t, newValidator(t, newestVersion), "monitoring", manifests)
	read := func(name string) []byte {
		text, err := os.ReadFile(chartDir + "/observability/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	found := map[string]bool{}
	for _, u := range documents(t, manifests) {
		var got, want any
		switch u.GetKind() {
		case "PrometheusRule":
			got = u.Object["spec"]
			if err := yaml.Unmarshal(read("alerts.yaml"), &want); err != nil {
				t.Fatal(err)
			}
		case "ConfigMap":
			text, _, _ := unstructured.NestedString(u.Object, "data", "remora.json")
			if err := yaml.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal(read("dashboard.json"), &want); err != nil {
				t.Fatal(err)
			}
		default:
			continue
		}
		found[u.GetKind()] = true
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the %s differs from the file", u.GetKind())
		}
	}
	if len(found) != 2 {
		t.Errorf("found %v", found)
	}
}
