package check

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/yaml"
)

var (
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	podResource = corev1.SchemeGroupVersion.WithResource("pods")
)

// injector evaluates a MutatingAdmissionPolicy with the packages that the API
// server evaluates it with.
type injector struct {
	matcher   matchconditions.Matcher
	patchers  []patch.Patcher
	compiler  *plugincel.CompositedCompiler
	converter managedfields.TypeConverter
	scheme    *runtime.Scheme
}

// policyOf returns the policy that is rendered for a case.
func policyOf(t *testing.T, name string) *v1.MutatingAdmissionPolicy {
	t.Helper()
	text, err := os.ReadFile("testdata/golden/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range documents(t, text) {
		if u.GetKind() == "MutatingAdmissionPolicy" {
			var p v1.MutatingAdmissionPolicy
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &p, true); err != nil {
				t.Fatal(err)
			}
			return &p
		}
	}
	t.Fatal("no policy in", name)
	return nil
}

func newInjector(t *testing.T, p *v1.MutatingAdmissionPolicy) *injector {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range p.Spec.Variables {
		compiled := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, options, environment.StoredExpressions)
		if compiled.Error != nil {
			t.Fatalf("variable %s: %v", v.Name, compiled.Error)
		}
	}
	i := &injector{compiler: compiler, scheme: runtime.NewScheme()}
	if err := corev1.AddToScheme(i.scheme); err != nil {
		t.Fatal(err)
	}
	conditions := make([]plugincel.ExpressionAccessor, len(p.Spec.MatchConditions))
	for n := range p.Spec.MatchConditions {
		conditions[n] = (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[n])
	}
	evaluator := compiler.CompileCondition(conditions, options, environment.StoredExpressions)
	if errs := evaluator.CompilationErrors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	i.matcher = matchconditions.NewMatcher(evaluator, p.Spec.FailurePolicy, "policy", "validate", p.Name)
	options.HasPatchTypes = true
	for _, m := range p.Spec.Mutations {
		if m.PatchType == v1.PatchTypeJSONPatch {
			compiled := compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, options, environment.StoredExpressions)
			i.patchers = append(i.patchers, patch.NewJSONPatcher(compiled))
		} else {
			compiled := compiler.CompileMutatingEvaluator(&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, options, environment.StoredExpressions)
			i.patchers = append(i.patchers, patch.NewApplyConfigurationPatcher(compiled))
		}
	}
	i.converter = applyconfigurations.NewTypeConverter(i.scheme)
	return i
}

// admit returns the pod as the API server would store it.
func (i *injector) admit(t *testing.T, pod *corev1.Pod) (_ *corev1.Pod, matched bool) {
	t.Helper()
	ctx := i.compiler.CreateContext(context.Background())
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	var object runtime.Object = pod
	match := i.matcher.Match(ctx, versioned(object, pod), nil, nil)
	if match.Error != nil {
		t.Fatal(match.Error)
	}
	if !match.Matches {
		return pod, false
	}
	for _, p := range i.patchers {
		var err error
		object, err = p.Patch(ctx, patch.Request{
			MatchedResource:     podResource,
			VersionedAttributes: versioned(object, pod),
			ObjectInterfaces:    admission.NewObjectInterfacesFromScheme(i.scheme),
			TypeConverter:       i.converter,
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var out corev1.Pod
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		t.Fatal(err)
	}
	return &out, true
}

func versioned(object runtime.Object, pod *corev1.Pod) *admission.VersionedAttributes {
	attributes := admission.NewAttributesRecord(object, nil, podKind, pod.Namespace, pod.Name, podResource, "",
		admission.Create, &metav1.CreateOptions{}, false, nil)
	return &admission.VersionedAttributes{
		Attributes: attributes, VersionedKind: podKind,
		VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(nil),
	}
}

// pod decodes a pod that opts in, with more in its annotations and its spec.
func pod(t *testing.T, annotations, spec string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	text := `{metadata: {name: agent, namespace: agents, annotations: {remora.dev/inject: "true"` + annotations + `}}, spec: {` + spec + `}}`
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

const plain = `containers: [{name: agent, image: a}]`

// The injected container is the one that the chart would put there.
func TestInjected(t *testing.T) {
	i := newInjector(t, policyOf(t, "injection"))
	golden, err := os.ReadFile("testdata/golden/sidecar-example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, _ := remoraOf(&pods(t, golden)[0].Spec)
	for name, spec := range map[string]string{
		"plain":              plain,
		"with others":        plain + `, initContainers: [{name: migrate, image: m}], volumes: [{name: v, emptyDir: {}}]`,
		"restricted already": `securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, ` + plain,
	} {
		t.Run(name, func(t *testing.T) {
			before := pod(t, "", spec)
			got, matched := i.admit(t, before.DeepCopy())
			if !matched {
				t.Fatal("not matched")
			}
			c, _ := remoraOf(&got.Spec)
			if c == nil {
				t.Fatal("no sidecar")
			}
			if !reflect.DeepEqual(c, want) {
				t.Errorf("the injected container differs from the chart's:\n%+v\n%+v", c, want)
			}
			checkRemora(t, name, &got.Spec, c, true)
			if len(got.Spec.Containers) != 1 || !reflect.DeepEqual(got.Spec.Containers, before.Spec.Containers) {
				t.Errorf("the application's containers changed: %+v", got.Spec.Containers)
			}
			if want := len(before.Spec.InitContainers) + 1; len(got.Spec.InitContainers) != want {
				t.Errorf("%d init containers, want %d", len(got.Spec.InitContainers), want)
			}
			if got.Labels["remora.dev/sidecar"] != "true" || got.Labels["remora.dev/memory"] != "gone-with-the-pod" {
				t.Errorf("labels are %v", got.Labels)
			}
		})
	}
}

// A pod of the profile restricted stays one.
func TestInjectedRestricted(t *testing.T) {
	spec := `securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: agent, image: a,
		securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]`
	for _, name := range []string{"injection", "injection-gateway"} {
		got, matched := newInjector(t, policyOf(t, name)).admit(t, pod(t, "", spec))
		if c, _ := remoraOf(&got.Spec); !matched || c == nil {
			t.Fatal("no sidecar")
		}
		restricted(t, name, &got.ObjectMeta, &got.Spec)
	}
}

// Pull secrets of the values are added to those of the pod, which it has of its
// own or of its service account: that one has been admitted before.
func TestInjectedPullSecrets(t *testing.T) {
	i := newInjector(t, policyOf(t, "injection-gateway"))
	for name, c := range map[string]struct{ spec, want string }{
		"none":             {plain, "registry mirror"},
		"others":           {plain + `, imagePullSecrets: [{name: own}]`, "own registry mirror"},
		"the same":         {plain + `, imagePullSecrets: [{name: mirror}, {name: own}]`, "mirror own registry"},
		"one without name": {plain + `, imagePullSecrets: [{}, {name: own}]`, "own registry mirror"},
	} {
		t.Run(name, func(t *testing.T) {
			got, matched := i.admit(t, pod(t, "", c.spec))
			if sidecar, _ := remoraOf(&got.Spec); !matched || sidecar == nil {
				t.Fatal("no sidecar")
			}
			var names []string
			for _, s := range got.Spec.ImagePullSecrets {
				if s.Name != "" {
					names = append(names, s.Name)
				}
			}
			slices.Sort(names)
			want := strings.Fields(c.want)
			slices.Sort(want)
			if !slices.Equal(names, want) {
				t.Errorf("got %q, want %q", names, want)
			}
		})
	}
}

// Variables of the sidecar may come from Secrets and ConfigMaps of the namespace.
func TestInjectedSources(t *testing.T) {
	got, _ := newInjector(t, policyOf(t, "injection-gateway")).admit(t, pod(t, "", plain))
	c, _ := remoraOf(&got.Spec)
	if n := len(c.Env); c.Env[n-1].Name != "REMORA_RECALL_DEADLINE" || c.Env[n-1].ValueFrom.ConfigMapKeyRef.Key != "deadline" {
		t.Errorf("env ends with %+v", c.Env[n-1])
	}
	if len(c.EnvFrom) != 1 || c.EnvFrom[0].SecretRef.Name != "remora-settings" || !*c.EnvFrom[0].SecretRef.Optional {
		t.Errorf("envFrom is %+v", c.EnvFrom)
	}
}

func TestInjectionLeavesAlone(t *testing.T) {
	i := newInjector(t, policyOf(t, "injection"))
	for name, p := range map[string]*corev1.Pod{
		"did not ask":        {Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent"}}}},
		"says no":            {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"remora.dev/inject": "false"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent"}}}},
		"has a sidecar":      pod(t, "", plain+`, initContainers: [{name: remora, image: r}]`),
		"has a container":    pod(t, "", `containers: [{name: agent, image: a}, {name: remora, image: r}]`),
		"the node's network": pod(t, "", plain+`, hostNetwork: true`),
		"Windows":            pod(t, "", plain+`, os: {name: windows}`),
	} {
		t.Run(name, func(t *testing.T) {
			if _, matched := i.admit(t, p); matched {
				t.Error("was changed")
			}
		})
	}
}

func TestInjectedVariables(t *testing.T) {
	i := newInjector(t, policyOf(t, "injection"))
	const base = "http://127.0.0.1:8787"
	two := `containers: [{name: agent, image: a, env: [{name: KEEP, value: k}]}, {name: other, image: b}]`
	for _, c := range []struct {
		name, annotations, spec string
		want                    []map[string]string // by container
	}{
		{"none", ``, two, []map[string]string{{"KEEP": "k"}, {}}},
		{
			"both APIs", `, remora.dev/base-url-env: "OPENAI_BASE_URL, ANTHROPIC_BASE_URL"`, two,
			[]map[string]string{
				{"KEEP": "k", "OPENAI_BASE_URL": base + "/v1", "ANTHROPIC_BASE_URL": base},
				{"OPENAI_BASE_URL": base + "/v1", "ANTHROPIC_BASE_URL": base},
			},
		},
		{
			"paths", `, remora.dev/base-url-env: "LLM_URL=/v1,OPENAI_BASE_URL="`, plain,
			[]map[string]string{{"LLM_URL": base + "/v1", "OPENAI_BASE_URL": base}},
		},
		{
			"one container", `, remora.dev/base-url-env: LLM_URL, remora.dev/containers: other`, two,
			[]map[string]string{{"KEEP": "k"}, {"LLM_URL": base}},
		},
		{
			"replaced", `, remora.dev/base-url-env: OPENAI_BASE_URL`,
			`containers: [{name: agent, image: a, env: [{name: OPENAI_BASE_URL, value: "https://api.openai.com/v1"}]}]`,
			[]map[string]string{{"OPENAI_BASE_URL": base + "/v1"}},
		},
		{
			"from a Secret, which stays", `, remora.dev/base-url-env: OPENAI_BASE_URL`,
			`containers: [{name: agent, image: a, env: [{name: OPENAI_BASE_URL, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]`,
			[]map[string]string{{"OPENAI_BASE_URL": ""}},
		},
		{"not a name", `, remora.dev/base-url-env: "1X,A B,X=http://evil.example,$(Y)"`, plain, []map[string]string{{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, matched := i.admit(t, pod(t, c.annotations, c.spec))
			if sidecar, _ := remoraOf(&got.Spec); !matched || sidecar == nil {
				t.Fatal("no sidecar")
			}
			for n, want := range c.want {
				env := map[string]string{}
				for _, e := range got.Spec.Containers[n].Env {
					env[e.Name] = e.Value
				}
				if !reflect.DeepEqual(env, want) {
					t.Errorf("container %d has %v, want %v", n, env, want)
				}
			}
		})
	}
}
