// Package check renders the chart, the Kustomize component and the snippets of
// deploy/, and checks them without a cluster: goldens, the schemas of
// Kubernetes, the profile restricted of PodSecurity, and the admission policy
// with the API server's own evaluator.
//
// It is a module of its own, so that none of these dependencies is Remora's.
package check

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"sigs.k8s.io/yaml"
)

const chartDir = "../helm/remora"

var update = flag.Bool("update", false, "writes the goldens and the schemas")

// values reads a file of values.
func values(t *testing.T, name string) map[string]any {
	t.Helper()
	v, err := chartutil.ReadValuesFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// render returns what `helm template` writes, hooks included, in the order of
// file names.
func render(c *chart.Chart, v map[string]any) ([]byte, error) {
	release := chartutil.ReleaseOptions{Name: "remora", Namespace: "agents", Revision: 1, IsInstall: true}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.37.2", Major: "1", Minor: "37"}
	if err := chartutil.ProcessDependenciesWithMerge(c, v); err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(c, v, release, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range files {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out bytes.Buffer
	for _, name := range names {
		if text := strings.TrimSpace(files[name]); text != "" {
			out.WriteString("---\n# Source: " + name + "\n" + strings.TrimPrefix(text, "---\n") + "\n")
		}
	}
	return out.Bytes(), nil
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// cases returns the names of the files in testdata/values, without extension.
func cases(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no values", err)
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".yaml"))
	}
	return names
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".yaml")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what is rendered; see the difference with go test -update, then git diff", file)
	}
}

func TestLint(t *testing.T) {
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			kube := chartutil.KubeVersion{Version: "v1.37.2", Major: "1", Minor: "37"}
			result := lint.AllWithKubeVersion(chartDir, values(t, "testdata/values/"+name+".yaml"), "agents", &kube)
			for _, m := range result.Messages {
				if m.Severity >= support.WarningSev {
					t.Error(m)
				}
			}
		})
	}
}

func TestGoldens(t *testing.T) {
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			got, err := render(loadChart(t), values(t, "testdata/values/"+name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name, got)
		})
	}
}

// A chart that depends on this one puts the sidecar into its own pod template.
func TestOwnChart(t *testing.T) {
	parent, err := loader.Load("testdata/parent")
	if err != nil {
		t.Fatal(err)
	}
	parent.AddDependency(loadChart(t))
	got, err := render(parent, nil)
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "own-chart", got)
}

// Values that would lose memory, cut off an application or mean nothing are
// refused, and the message names them.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, values, want string }{
		{"store in PostgreSQL", "{store: {kind: postgres}}", "store"},
		{"settings of PostgreSQL", "{store: {kind: embedded, postgres: {url: x}}}", "postgres"},
		{"unknown value", "{shap: shared}", "shap"},
		{"CPU limit", "{resources: {limits: {cpu: 1, memory: 128Mi}}}", "cpu"},
		{"no memory limit", "{resources: {limits: {memory: null}}}", "memory"},
		{"digest that is none", "{image: {digest: latest}}", "digest"},
		{"kept without a key", "{memory: {volume: {kind: persistentVolumeClaim}}}", "secrets.storageKey"},
		{"shared without a key", "{shape: shared}", "secrets.storageKey"},
		{"key that is none", "{secrets: {storageKey: {value: secret}}}", "storageKey"},
		{"volume for many pods", "{memory: {volume: {accessModes: [ReadWriteMany]}}}", "accessModes"},
		{"gateway without address", "{memory: {mode: gateway}}", "gateway.baseUrl"},
		{"gateway without user", "{memory: {mode: gateway}, gateway: {baseUrl: 'http://r:8788/compat/gateway'}}", "gateway.userId"},
		{"gateway without key", "{memory: {mode: gateway}, gateway: {baseUrl: 'http://r:8788/compat/gateway', userId: ines}}", "secrets.gatewayKey"},
		{"gateway in mode local", "{gateway: {userId: ines}}", "memory.mode"},
		{"shared with a gateway", "{shape: shared, memory: {mode: gateway}}", "mode"},
		{"shared that serves nothing", "{shape: shared, shared: {gateway: false}, secrets: {storageKey: {existingSecret: s}}}", "shared"},
		{"policy for an application's pods", "{networkPolicy: {enabled: true}}", "networkPolicy"},
		{"budget for an application's pods", "{podDisruptionBudget: {enabled: true}}", "podDisruptionBudget"},
		{"Job that never ends", "{sidecar: {native: false}, example: {enabled: true, kind: Job}}", "example.kind"},
		{"alert that there is not", "{prometheusRule: {enabled: true, without: [RemoraFine]}}", "RemoraFine"},
		{"health on the proxy's port", "{health: {port: 8787}}", "health.port"},
		{"health on the control plane's port", "{health: {port: 8788}}", "health.port"},
		{"health on a port for root", "{health: {port: 80}}", "port"},
		{"variable without a value", "{extraEnv: [{name: A}]}", "extraEnv"},
		{"variable from two places", "{extraEnv: [{name: A, valueFrom: {fieldRef: {fieldPath: a}, secretKeyRef: {name: s, key: k}}}]}", "extraEnv"},
		{"variable with a value and a source", "{extraEnv: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: a}}}]}", "extraEnv"},
		{"variable with an unknown source", "{extraEnv: [{name: A, valueFrom: {secretRef: {name: s}}}]}", "secretRef"},
		{"variable from a Secret without key", "{extraEnv: [{name: A, valueFrom: {secretKeyRef: {name: s}}}]}", "extraEnv"},
		{"name that is none", "{extraEnv: [{name: A-B, value: c}]}", "extraEnv"},
		{"variable twice", "{env: {A: b}, extraEnv: [{name: A, value: c}]}", "A is set twice"},
		{"variables from nowhere", "{envFrom: [{prefix: A_}]}", "envFrom"},
		{"variables from two places", "{envFrom: [{secretRef: {name: s}, configMapRef: {name: c}}]}", "envFrom"},
		{"pull secret without a name", "{imagePullSecrets: [registry]}", "imagePullSecrets"},
		{"injection of a classic container", "{shape: injection, sidecar: {native: false}}", "sidecar.native"},
		{"injection with a file", "{shape: injection, config: {log: {level: debug}}}", "config"},
		{"injection with a secret", "{shape: injection, secrets: {storageKey: {existingSecret: s}}}", "secrets.storageKey"},
		{"injection with a claim", "{shape: injection, memory: {volume: {kind: persistentVolumeClaim}}}", "memory.volume.kind"},
		{"upstream with a credential", "{upstream: {url: 'https://me:secret@llm.example'}}", "url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v map[string]any
			if err := yaml.Unmarshal([]byte(c.values), &v); err != nil {
				t.Fatal(err)
			}
			_, err := render(loadChart(t), v)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
