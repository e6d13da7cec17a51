package check

import (
	"testing"

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

// overlays are built by Kustomize: the example, and one with the sidecar only.
var overlays = map[string]string{"kustomize": "../kustomize/example", "kustomize-sidecar": "testdata/overlay"}

func TestKustomize(t *testing.T) {
	for name, dir := range overlays {
		t.Run(name, func(t *testing.T) { compareGolden(t, name, build(t, dir)) })
	}
}
