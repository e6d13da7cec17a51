package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// documents decodes manifests.
func documents(t *testing.T, manifests []byte) (all []unstructured.Unstructured) {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		var u unstructured.Unstructured
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if u.Object != nil {
			all = append(all, u)
		}
	}
}

// pods returns the pods and pod templates of manifests.
func pods(t *testing.T, manifests []byte) (all []corev1.PodTemplateSpec) {
	t.Helper()
	for _, u := range documents(t, manifests) {
		object := u.Object
		switch u.GetKind() {
		case "Pod":
		case "Deployment", "StatefulSet", "Job":
			object, _, _ = unstructured.NestedMap(object, "spec", "template")
		default:
			continue
		}
		var p corev1.PodTemplateSpec
		delete(object, "apiVersion")
		delete(object, "kind")
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &p, true); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// restricted reports what the profile restricted of PodSecurity forbids.
func restricted(t *testing.T, name string, meta *metav1.ObjectMeta, spec *corev1.PodSpec) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, r := range evaluator.EvaluatePod(level, meta, spec) {
		if !r.Allowed {
			t.Errorf("%s: %s: %s", name, r.ForbiddenReason, r.ForbiddenDetail)
		}
	}
}

func TestRestricted(t *testing.T) {
	found := 0
	for name, manifests := range everything(t) {
		for _, p := range pods(t, manifests) {
			found++
			restricted(t, name, &p.ObjectMeta, &p.Spec)
		}
	}
	if found < 15 {
		t.Errorf("found %d pods: looking in the wrong place", found)
	}
}

// The check is not vacuous: a plain pod is not restricted.
func TestRestrictedRefuses(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}
	for _, r := range evaluator.EvaluatePod(level, &metav1.ObjectMeta{}, &spec) {
		if !r.Allowed {
			return
		}
	}
	t.Error("a pod without a security context is allowed")
}

// remoraOf returns the container remora of a pod, and whether it is native.
func remoraOf(spec *corev1.PodSpec) (c *corev1.Container, native bool) {
	for i := range spec.InitContainers {
		if spec.InitContainers[i].Name == "remora" {
			return &spec.InitContainers[i], true
		}
	}
	for i := range spec.Containers {
		if spec.Containers[i].Name == "remora" {
			return &spec.Containers[i], false
		}
	}
	return nil, false
}

// What every Remora in a pod has, whichever way it came there.
func TestRemora(t *testing.T) {
	found := 0
	for name, manifests := range everything(t) {
		for _, p := range pods(t, manifests) {
			if c, native := remoraOf(&p.Spec); c != nil {
				found++
				checkRemora(t, name, &p.Spec, c, native)
			}
		}
	}
	if found < 12 {
		t.Errorf("found %d containers: looking in the wrong place", found)
	}
}

func checkRemora(t *testing.T, name string, spec *corev1.PodSpec, c *corev1.Container, native bool) {
	t.Helper()
	if native && (spec.InitContainers[0].Name != "remora" || c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways) {
		t.Errorf("%s: the sidecar is not the first init container that keeps running", name)
	}
	s := c.SecurityContext
	if s == nil || s.RunAsUser == nil || *s.RunAsUser != 65532 || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		t.Errorf("%s: not user 65532 on a read-only root", name)
	}
	if c.Resources.Limits.Memory().String() != "128Mi" || c.Resources.Requests.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
		t.Errorf("%s: resources are %v", name, c.Resources)
	}
	if _, limited := c.Resources.Limits[corev1.ResourceCPU]; limited {
		t.Errorf("%s: has a CPU limit", name)
	}
	for path, probe := range map[string]*corev1.Probe{"/startupz": c.StartupProbe, "/readyz": c.ReadinessProbe, "/livez": c.LivenessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "health" {
			t.Errorf("%s: no probe asks %s", name, path)
		}
	}
	env := map[string]string{}
	for _, e := range c.Env {
		if _, twice := env[e.Name]; twice {
			t.Errorf("%s: %s is set twice", name, e.Name)
		}
		env[e.Name] = e.Value
	}
	health := ""
	for _, p := range c.Ports {
		if p.Name == "health" {
			health = fmt.Sprintf(":%d", p.ContainerPort)
		}
	}
	if env["REMORA_IDENTITY_ANONYMOUS"] != "off" || env["REMORA_HEALTH_LISTEN"] != health || env["REMORA_STORAGE_KEY_FILE"] == "" {
		t.Errorf("%s: the port health is %q, and env %v", name, health, env)
	}
	checkVolume(t, name, spec, c, env["REMORA_STORAGE_KEY_FILE"])
}

// Every variable is one that Remora knows: another one would set nothing.
func TestSettings(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for name, manifests := range everything(t) {
		for _, variable := range regexp.MustCompile(`\bREMORA_[A-Z_]+`).FindAllString(string(manifests), -1) {
			checked++
			setting := strings.TrimSuffix(variable, "_FILE")
			if !strings.Contains(string(text), "`"+variable+"`") && !strings.Contains(string(text), "`"+setting+"`") {
				t.Errorf("%s sets %s, which docs/configuration.md doesn't know", name, variable)
			}
		}
	}
	if checked < 50 {
		t.Errorf("found %d variables", checked)
	}
}

// checkVolume checks that a volume is called what it is, and that the key of
// one that is kept is elsewhere.
func checkVolume(t *testing.T, name string, spec *corev1.PodSpec, c *corev1.Container, keyFile string) {
	t.Helper()
	volumes := map[string]corev1.Volume{}
	for _, v := range spec.Volumes {
		volumes[v.Name] = v
	}
	for _, m := range c.VolumeMounts {
		v, declared := volumes[m.Name]
		switch {
		case m.MountPath != "/data":
			if !declared || !m.ReadOnly {
				t.Errorf("%s: %s is not declared, or can be written to", name, m.Name)
			}
		case declared && v.EmptyDir != nil:
			if m.Name != "remora-gone-with-the-pod" {
				t.Errorf("%s: an emptyDir is named %s", name, m.Name)
			}
		case m.Name != "remora-memory":
			t.Errorf("%s: a volume that is kept is named %s", name, m.Name)
		case keyFile != "/run/secrets/remora/storage-key":
			t.Errorf("%s: the key of memory that is kept is in %s", name, keyFile)
		case spec.SecurityContext == nil || spec.SecurityContext.FSGroup == nil:
			t.Errorf("%s: no fsGroup makes the key and the volume Remora's", name)
		}
	}
}

// The pod for maintenance has the volume, the key and the image of a shared
// Remora that is installed as docs/kubernetes.md says.
func TestMaintenance(t *testing.T) {
	v := map[string]any{"shape": "shared", "secrets": map[string]any{"storageKey": map[string]any{"existingSecret": "remora"}}}
	manifests, err := render(loadChart(t), v)
	if err != nil {
		t.Fatal(err)
	}
	claim := ""
	for _, u := range documents(t, manifests) {
		if u.GetKind() == "StatefulSet" {
			claim = "remora-memory-" + u.GetName() + "-0"
		}
	}
	var shared *corev1.PodSpec
	for _, p := range pods(t, manifests) {
		if c, _ := remoraOf(&p.Spec); c != nil {
			shared = &p.Spec
		}
	}
	text, err := os.ReadFile("../snippets/maintenance.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec := pods(t, text)[0].Spec
	want, got := &shared.Containers[0], &spec.Containers[0]
	if got.Image != want.Image || !reflect.DeepEqual(got.VolumeMounts, want.VolumeMounts) {
		t.Errorf("got %s with %v, Remora has %s with %v", got.Image, got.VolumeMounts, want.Image, want.VolumeMounts)
	}
	for _, e := range got.Env {
		if !slices.Contains(want.Env, e) {
			t.Errorf("Remora does not have %v", e)
		}
	}
	if len(got.Env) != 2 || spec.Volumes[0].PersistentVolumeClaim.ClaimName != claim {
		t.Errorf("env is %v, the volume %v; want the claim %s", got.Env, spec.Volumes[0], claim)
	}
	if a, b := spec.Volumes[1].Secret.SecretName, shared.Volumes[0].Projected.Sources[0].Secret.Name; a != b {
		t.Errorf("the key is in the Secret %s, Remora's in %s", a, b)
	}
	checkVolume(t, "maintenance", &spec, got, got.Env[1].Value)
}
