package check

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const (
	chartDir    = "../helm/ropeline"
	releaseName = "shop"
	namespace   = "waiting"
)

// decoder refuses what Kubernetes' types do not have.
var decoder = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// rendered is what a release consists of.
type rendered struct {
	set      *appsv1.StatefulSet
	config   *corev1.ConfigMap
	services map[string]*corev1.Service
	secret   *corev1.Secret                // nil: one that exists
	budget   *policyv1.PodDisruptionBudget // nil: turned off
	policy   *networkingv1.NetworkPolicy   // nil: turned off
	notes    string
}

// valuesOf reads values as a file of them, over the two that have to be given.
func valuesOf(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{"secret": map[string]any{"existing": "mesh"}, "config": map[string]any{"origin": "http://shop.default.svc:3000"}}
	given, err := loader.LoadValues(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return loader.MergeMaps(values, given)
}

// render renders the chart as helm does, values held against their schema.
func render(t *testing.T, values map[string]any) (*rendered, error) {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return renderChart(t, c, values)
}

func renderChart(t *testing.T, c *chart.Chart, values map[string]any) (*rendered, error) {
	t.Helper()
	options := common.ReleaseOptions{Name: releaseName, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, values, options, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	r := &rendered{services: map[string]*corev1.Service{}}
	for name, text := range texts {
		if strings.HasSuffix(name, "NOTES.txt") {
			r.notes = text
			continue
		}
		for object := range strings.SplitSeq(text, "\n---\n") {
			if err := r.add(object); err != nil {
				return nil, fmt.Errorf("%s: %w in\n%s", name, err, object)
			}
		}
	}
	return r, nil
}

func (r *rendered) add(text string) error {
	var fields map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &fields); err != nil || len(fields) == 0 {
		return err // a template that is turned off
	}
	object, _, err := decoder.Decode([]byte(text), nil, nil)
	if err != nil {
		return err
	}
	return r.put(object)
}

func (r *rendered) put(object runtime.Object) error {
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		r.set = o
	case *corev1.ConfigMap:
		r.config = o
	case *corev1.Service:
		r.services[o.Name] = o
	case *corev1.Secret:
		r.secret = o
	case *policyv1.PodDisruptionBudget:
		r.budget = o
	case *networkingv1.NetworkPolicy:
		r.policy = o
	default:
		return fmt.Errorf("a %T is not known here", object)
	}
	return nil
}

// chartCases are values that a chart is rendered with, beside the two that have to be given.
var chartCases = map[string]string{
	"as little as can be": "",
	"many settings": `
config:
  total-active-users: 2147483647
  new-users-per-minute: 1000000
  trusted-proxies: [10.0.0.0/8]
  verdict-listen: :9081
  rooms:
    - {room: tickets, path: /tickets, cookie-suffix: tickets, session-duration: 10m, queueing-method: random}
    - room: shop
      host: shop.example
      custom-page-html: "<h1>{{title}}</h1>\n<p>{{#waitTimeKnown}}soon{{/waitTimeKnown}}</p>"
      rules: [{action: bypass_waiting_room, expression: 'http.request.uri.path eq "/up"'}]
extraPorts: [{name: verdicts, port: 9081}]
`,
	"a second cluster": `
bootstrapNodes: [first-ropeline-0, first-ropeline-1]
replicas: 5
site: b
mesh: {port: 17946, join: [a1.example:7946]}
networkPolicy: {mesh: [{ipBlock: {cidr: 192.0.2.0/24}}]}
`,
	"nodes that go": "{replicas: 5, onStop: leave, updatePartition: 3}",
	"one node that brings its secret": `
replicas: 1
fullnameOverride: queue
secret: {existing: "", value: "SECRET"}
podDisruptionBudget: {enabled: false}
networkPolicy: {enabled: false}
`,
	"everything": `
nameOverride: ropes
image: {repository: registry.example/ropeline, tag: 1.2.3, pullPolicy: Always}
imagePullSecrets: [{name: registry}]
drainDelay: 120
drainTimeout: 3600
storage: {size: 10Gi, className: fast, annotations: {backup: none}}
service: {type: LoadBalancer, port: 443, annotations: {a: b}, externalTrafficPolicy: Local, loadBalancerClass: x/y, loadBalancerSourceRanges: [192.0.2.0/24]}
extraPorts: [{name: redirect, port: 8081, servicePort: 80, protocol: TCP}]
podDisruptionBudget: {maxUnavailable: 20%}
networkPolicy:
  visitors: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress}}}]
  egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]
resources: {limits: {cpu: "2"}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b}}}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
nodeSelector: {pool: edge}
tolerations: [{key: edge, operator: Exists}]
priorityClassName: high
serviceAccountName: nobody
podAnnotations: {a: b}
podLabels: {c: d}
extraVolumes: [{name: tmp, emptyDir: {}}]
extraVolumeMounts: [{name: tmp, mountPath: /tmp}]
extraContainers: [{name: metrics, image: "prom/prometheus:v3.1.0", args: [--agent]}]
extraEnv: [{name: ROPELINE_ADMIN_TOKEN, valueFrom: {secretKeyRef: {name: admin, key: token}}}]
`,
}

// checkChartArchive renders the chart of a release, which has the release's image.
func checkChartArchive(t *testing.T, path string) {
	c, err := loader.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := renderChart(t, c, valuesOf(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if image := r.set.Spec.Template.Spec.Containers[0].Image; c.Metadata.Version != "1.2.3" || image != "ropeline:1.2.3" {
		t.Errorf("the chart has version %s and the image %s", c.Metadata.Version, image)
	}
}

func caseNames() []string { return slices.Sorted(maps.Keys(chartCases)) }

func TestChartLints(t *testing.T) {
	for _, name := range caseNames() {
		for _, m := range lint.RunAll(chartDir, valuesOf(t, chartCases[name]), namespace).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

// TestChart renders objects that Kubernetes knows, that fit each other, and that start a node.
func TestChart(t *testing.T) {
	for _, name := range caseNames() {
		t.Run(name, func(t *testing.T) {
			values := valuesOf(t, chartCases[name])
			r, err := render(t, values)
			if err != nil {
				t.Fatal(err)
			}
			checkReferences(t, r)
			checkPod(t, &r.set.Spec.Template.Spec)
			checkEnd(t, r)
			r.start(t, values["bootstrapNodes"] == nil)
		})
	}
}

// start runs the first node of the release, which is one of those that bootstrap a mesh or not.
func (r *rendered) start(t *testing.T, named bool) {
	t.Helper()
	var names []string
	for i := range min(3, int(*r.set.Spec.Replicas)) {
		names = append(names, fmt.Sprintf("- %s-%d\n", r.set.Name, i))
	}
	if strings.Contains(r.config.Data["ropeline.yaml"], "bootstrap-nodes:\n"+strings.Join(names, "")) != named {
		t.Errorf("the first nodes shall bootstrap the mesh: %v, and the settings are\n%s", named, r.config.Data["ropeline.yaml"])
	}
	pod := r.set.Spec.Template.Spec.Containers[0]
	secret := newSecret(t)
	if r.secret != nil && string(r.secret.Data["secret.key"]) != "SECRET\n" {
		t.Errorf("the secret is %q", r.secret.Data["secret.key"])
	}
	c := container{env: map[string]string{"POD_NAME": r.set.Name + "-0"}, files: map[string]string{
		"/etc/ropeline/ropeline.yaml":     r.config.Data["ropeline.yaml"],
		"/etc/ropeline-secret/secret.key": secret,
	}}
	for _, arg := range pod.Args { // as the kubelet replaces them
		c.args = append(c.args, strings.ReplaceAll(arg, "$(POD_NAME)", r.set.Name+"-0"))
	}
	path := "/healthz"
	if named { // alone, so that it need not wait for the others
		path = "/readyz"
		c.args = append(c.args, "--bootstrap-nodes", r.set.Name+"-0")
	}
	if strings.Contains(r.config.Data["ropeline.yaml"], "verdict-listen") {
		c.args = append(c.args, "--verdict-listen", freeAddress(t, "tcp"))
	}
	c.run(t, path)
	for _, probe := range []*corev1.Probe{pod.StartupProbe, pod.ReadinessProbe, pod.LivenessProbe} {
		wantProbe(t, probe.Exec.Command)
	}
}

// TestChartRefuses: what is missing or cannot be is told by its name.
func TestChartRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"secret: {existing: ''}":                       "ropeline keygen",
		"secret: {value: x}":                           "secret.existing and secret.value",
		"config: {origin: ''}":                         "config.origin is missing",
		"config: {listen: ':80'}":                      "listen",
		"config: {data_dir: /tmp}":                     "data_dir",
		"replica: 5":                                   "replica",
		"replicas: 0":                                  "replicas",
		"onStop: go":                                   "onStop",
		"drainDelay: 8s":                               "drainDelay",
		"mesh: {port: 80}":                             "port",
		"site: 'a b'":                                  "site",
		"storage: {size: much}":                        "size",
		"extraPorts: [{name: Verdicts, port: 9081}]":   "name",
		"founder: true":                                "founder",
		"bootstrapNodes: [a, a]":                       "bootstrapNodes",
		"config: {bootstrap-nodes: a}":                 "bootstrap-nodes",
		"fullnameOverride: " + strings.Repeat("a", 51): "fullnameOverride",
	} {
		if _, err := render(t, valuesOf(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestChartLeavesOthersAlone: passing the last nodes' rights on, as the page on installing has
// it, changes nothing for the others, and in the end is as if it had not been.
func TestChartLeavesOthersAlone(t *testing.T) {
	template := func(text string) *rendered {
		r, err := render(t, valuesOf(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before, going, after := template("replicas: 3"), template("{replicas: 3, onStop: leave, updatePartition: 2}"), template("{replicas: 2, onStop: keep, updatePartition: 0}")
	if before.config.Data["ropeline.yaml"] != going.config.Data["ropeline.yaml"] {
		t.Error("the settings of all nodes change, and not those of the last alone")
	}
	if got := *going.set.Spec.UpdateStrategy.RollingUpdate.Partition; got != 2 {
		t.Errorf("nodes from %d on are given the new settings", got)
	}
	if a := going.set.Spec.Template.Spec.Containers[0].Args; !slices.Contains(a, "--on-stop=leave") {
		t.Errorf("the last node is started with %q", a)
	}
	if before.set.Spec.Template.String() != after.set.Spec.Template.String() {
		t.Error("the other nodes are restarted in the end")
	}
}

func TestChartNotes(t *testing.T) {
	r, err := render(t, valuesOf(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"shop-ropeline-0 to -2 bootstrap a new mesh together", "exec shop-ropeline-0 -- /ropeline status"} {
		if !strings.Contains(r.notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, r.notes)
		}
	}
}

func TestChartKeepsASecret(t *testing.T) {
	secret := newSecret(t)
	r, err := render(t, valuesOf(t, "secret: {existing: '', value: '"+strings.TrimSpace(secret)+"'}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r.secret.Data["secret.key"]); got != secret {
		t.Errorf("got %s, want %s", base64.StdEncoding.EncodeToString([]byte(got)), secret)
	}
}
