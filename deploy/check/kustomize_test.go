package check

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// build returns what `kubectl kustomize DIR` writes.
func build(t *testing.T, dir string) []byte {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// overlays are built by Kustomize: the examples, one with the sidecar only, and
// one with a classic container.
var overlays = map[string]string{
	"kustomize": "../kustomize/example", "kustomize-job": "../kustomize/job", "kustomize-shared": "../kustomize/shared",
	"kustomize-sidecar": "testdata/overlay", "kustomize-classic": "testdata/classic",
}

// An fsGroup of the application stays, and a Deployment without one is refused:
// Remora could not store anything.
func TestKeepNeedsAGroup(t *testing.T) {
	group := func(securityContext string) ([]byte, error) {
		fs := filesys.MakeFsInMemory()
		for _, file := range []string{"sidecar/kustomization.yaml", "sidecar/sidecar.yaml", "keep/kustomization.yaml", "keep/keep.yaml", "keep/claim.yaml"} {
			text, err := os.ReadFile("../kustomize/" + file)
			if err != nil {
				t.Fatal(err)
			}
			if err := fs.WriteFile("/"+file, text); err != nil {
				t.Fatal(err)
			}
		}
		for file, text := range map[string]string{
			"kustomization.yaml": "resources: [agent.yaml]\ncomponents: [../sidecar, ../keep]\n",
			"agent.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: agent, labels: {remora.dev/sidecar: 'true'}}\n" +
				"spec: {template: {spec: {securityContext: " + securityContext + ", containers: [{name: agent, image: a}]}}}\n",
		} {
			if err := fs.WriteFile("/overlay/"+file, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "/overlay")
		if err != nil {
			return nil, err
		}
		return resources.AsYaml()
	}
	if text, err := group("{fsGroup: 2000}"); err != nil || !strings.Contains(string(text), "fsGroup: 2000\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := group("{runAsNonRoot: true}"); err == nil || !strings.Contains(err.Error(), "fsGroup") {
		t.Errorf("got %v, want an error with fsGroup", err)
	}
}

func TestKustomize(t *testing.T) {
	for name, dir := range overlays {
		t.Run(name, func(t *testing.T) { compareGolden(t, name, build(t, dir)) })
	}
}

// Without Helm a shared Remora is the one that the chart makes.
func TestSharedIsTheCharts(t *testing.T) {
	existing := map[string]any{"existingSecret": "remora"}
	v := map[string]any{"shape": "shared", "secrets": map[string]any{"storageKey": existing, "adminToken": existing}}
	rendered, err := render(loadChart(t), v)
	if err != nil {
		t.Fatal(err)
	}
	specs := func(manifests []byte) map[string]any {
		all := map[string]any{}
		for _, u := range documents(t, manifests) {
			if u.GetKind() != "Pod" { // of helm test
				unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata") // what Helm says of itself
				all[u.GetKind()+" "+u.GetName()] = u.Object["spec"]
			}
		}
		return all
	}
	want, got := specs(rendered), specs(build(t, "../kustomize/shared"))
	if len(got) != len(want) {
		t.Errorf("got %d objects, the chart makes %d", len(got), len(want))
	}
	for name := range want {
		if !reflect.DeepEqual(got[name], want[name]) {
			t.Errorf("%s is\n%v, the chart's\n%v", name, got[name], want[name])
		}
	}
}
