package check

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/validator"
	"sigs.k8s.io/yaml"
)

// The versions of Kubernetes whose schemas are in testdata/schemas: the oldest
// for the classic container, the oldest for the native sidecar, and one with
// MutatingAdmissionPolicy.
const (
	classicVersion = "v1.28.15"
	nativeVersion  = "v1.29.14"
	newestVersion  = "v1.37.2"

	operatorModule = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
)

// kinds are what the chart renders, by the file of the specification that
// describes them and their group and version.
var kinds = map[string]map[string][]string{
	"api__v1":                     {"v1": {"ConfigMap", "PersistentVolumeClaim", "Pod", "Secret", "Service"}},
	"apis__apps__v1":              {"apps/v1": {"Deployment", "StatefulSet"}},
	"apis__batch__v1":             {"batch/v1": {"Job"}},
	"apis__policy__v1":            {"policy/v1": {"PodDisruptionBudget"}},
	"apis__networking.k8s.io__v1": {"networking.k8s.io/v1": {"NetworkPolicy"}},
	"apis__admissionregistration.k8s.io__v1": {
		"admissionregistration.k8s.io/v1": {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
	},
}

// operatorKinds are custom resources of Prometheus's operator, by their plural.
var operatorKinds = map[string]string{"podmonitors": "PodMonitor", "prometheusrules": "PrometheusRule"}

// oldest returns the oldest version that the manifests of a case are for.
func oldest(name string) string {
	switch {
	case strings.Contains(name, "injection"):
		return newestVersion
	case strings.Contains(name, "classic"), strings.Contains(name, "shared"), name == "maintenance":
		return classicVersion
	default:
		return nativeVersion
	}
}

// newValidator returns kubeconform with the schemas of a version.
func newValidator(t *testing.T, version string) validator.Validator {
	t.Helper()
	v, err := validator.New([]string{"testdata/schemas/" + version + ".json"}, validator.Opts{Strict: true, KubernetesVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func validate(t *testing.T, v validator.Validator, name string, manifests []byte) {
	t.Helper()
	valid := 0
	for _, r := range v.Validate(name, io.NopCloser(bytes.NewReader(manifests))) {
		switch r.Status {
		case validator.Valid:
			valid++
		case validator.Empty:
		default:
			t.Errorf("%s is not valid: %v\n%s", name, r.Err, r.Resource.Bytes)
		}
	}
	if valid == 0 {
		t.Errorf("%s: nothing was validated", name)
	}
}

// everything returns all manifests by name: goldens, snippets, and what the
// overlays of Kustomize build.
func everything(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, pattern := range []string{"testdata/golden/*.yaml", "../snippets/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal("nothing is", pattern, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all[strings.TrimSuffix(filepath.Base(f), ".yaml")] = text
		}
	}
	for name, dir := range overlays {
		all[name] = build(t, dir)
	}
	return all
}

func TestSchemas(t *testing.T) {
	validators := map[string]validator.Validator{} // one each, since compiling a schema takes long
	for _, version := range []string{classicVersion, nativeVersion, newestVersion} {
		validators[version] = newValidator(t, version)
	}
	for name, manifests := range everything(t) {
		for _, version := range slices.Compact([]string{oldest(name), newestVersion}) {
			t.Run(name+"/"+version, func(t *testing.T) { validate(t, validators[version], name, manifests) })
		}
	}
}

// The schemas refuse what a cluster would refuse.
func TestSchemasRefuse(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: b%s}]}\n"
	for _, c := range []struct{ name, version, manifest string }{
		{"unknown field", newestVersion, strings.Replace(pod, "%s", ", imag: c", 1)},
		{"type", newestVersion, strings.Replace(pod, "%s", ", stdin: 1", 1)},
		{"missing field", newestVersion, "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: a}]}\n"},
		{"kind", newestVersion, "apiVersion: v1\nkind: Pud\nmetadata: {name: a}\n"},
		{"apiVersion", newestVersion, "apiVersion: v1\nkind: Deployment\nmetadata: {name: a}\n"},
		{"injection before it was there", nativeVersion, "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: a}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range newValidator(t, c.version).Validate(c.name, io.NopCloser(strings.NewReader(c.manifest))) {
				if r.Status == validator.Valid {
					t.Error("is valid")
				}
			}
		})
	}
}

// With -update the schemas are made again from the specification in the module
// of Kubernetes, and from the custom resources of Prometheus's operator.
func TestSchemasAreMade(t *testing.T) {
	if !*update {
		t.Skip("the schemas are made with -update")
	}
	for _, version := range []string{classicVersion, nativeVersion, newestVersion} {
		dir := moduleDir(t, "k8s.io/kubernetes@"+version)
		s := schemas{definitions: map[string]any{}}
		for file, groups := range kinds {
			s.add(t, filepath.Join(dir, "api/openapi-spec/v3", file+"_openapi.json"), groups)
		}
		for plural, kind := range operatorKinds {
			s.addCustom(t, moduleDir(t, operatorModule), plural, kind)
		}
		s.write(t, version)
	}
}

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	command := exec.Command("go", "mod", "download", "-json", module)
	command.Dir = t.TempDir()
	out, err := command.Output()
	var m struct{ Dir string }
	if err != nil || json.Unmarshal(out, &m) != nil {
		t.Fatal(err, string(out))
	}
	return m.Dir
}

// schemas collects the definitions that the kinds need.
type schemas struct {
	all, definitions map[string]any
	conditions       []any
	known            []any
}

func (s *schemas) add(t *testing.T, file string, groups map[string][]string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	s.all = spec.Components.Schemas
	for apiVersion, names := range groups {
		for name, schema := range s.all {
			for _, kind := range names {
				if strings.HasSuffix(name, "."+kind) && isKind(schema, kind) {
					s.use(name)
					s.condition(apiVersion, kind, name)
				}
			}
		}
	}
}

// isKind reports whether a definition is that of a kind, not of a part that
// has the same name.
func isKind(schema any, kind string) bool {
	m, _ := schema.(map[string]any)
	list, _ := m["x-kubernetes-group-version-kind"].([]any)
	for _, g := range list {
		if g, _ := g.(map[string]any); g["kind"] == kind {
			return true
		}
	}
	return false
}

func (s *schemas) condition(apiVersion, kind, definition string) {
	s.known = append(s.known, kind)
	s.conditions = append(s.conditions, map[string]any{
		"if": map[string]any{"properties": map[string]any{"kind": map[string]any{"const": kind}}},
		"then": map[string]any{
			"$ref":       "#/definitions/" + definition,
			"properties": map[string]any{"apiVersion": map[string]any{"const": apiVersion}},
		},
	})
}

// use copies a definition, and all that it refers to, once.
func (s *schemas) use(name string) {
	if _, done := s.definitions[name]; !done {
		s.definitions[name] = nil
		s.definitions[name] = s.simplify(s.all[name])
	}
}

// simplify returns a schema without descriptions and extensions. Objects with
// known fields have no others.
func (s *schemas) simplify(node any) any {
	switch node := node.(type) {
	case []any:
		out := make([]any, len(node))
		for i, n := range node {
			out[i] = s.simplify(n)
		}
		return out
	case map[string]any:
		return s.simplifyObject(node)
	default:
		return node
	}
}

func (s *schemas) simplifyObject(node map[string]any) any {
	out := map[string]any{}
	for key, value := range node {
		switch {
		case key == "properties":
			fields := map[string]any{}
			for name, field := range value.(map[string]any) {
				fields[name] = s.simplify(field)
			}
			out[key] = fields
		case key == "$ref":
			name := strings.TrimPrefix(value.(string), "#/components/schemas/")
			s.use(name)
			out[key] = "#/definitions/" + name
		case key == "description", key == "default", key == "nullable", strings.HasPrefix(key, "x-"):
		default:
			out[key] = s.simplify(value)
		}
	}
	_, fields := out["properties"]
	_, others := out["additionalProperties"]
	if fields && !others && node["x-kubernetes-preserve-unknown-fields"] == nil {
		out["additionalProperties"] = false
	}
	if node["x-kubernetes-int-or-string"] == true {
		delete(out, "anyOf")
		out["type"] = []any{"integer", "string"}
	}
	return out
}

func (s *schemas) addCustom(t *testing.T, dir, plural, kind string) {
	text, err := os.ReadFile(filepath.Join(dir, "example/prometheus-operator-crd/monitoring.coreos.com_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	schema["properties"].(map[string]any)["metadata"].(map[string]any)["x-kubernetes-preserve-unknown-fields"] = true
	s.definitions[kind] = s.simplify(schema)
	s.condition("monitoring.coreos.com/v1", kind, kind)
}

func (s *schemas) write(t *testing.T, version string) {
	text, err := json.Marshal(map[string]any{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"required":    []any{"apiVersion", "kind", "metadata"},
		"properties":  map[string]any{"kind": map[string]any{"enum": s.known}},
		"allOf":       s.conditions,
		"definitions": s.definitions,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("testdata/schemas/"+version+".json", append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
