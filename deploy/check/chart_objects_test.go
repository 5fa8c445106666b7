package check

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// checkReferences holds that objects name each other right.
func checkReferences(t *testing.T, r *rendered) {
	t.Helper()
	template := r.set.Spec.Template
	wantSelects := func(what string, s *metav1.LabelSelector) {
		t.Helper()
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil || selector.Empty() || !selector.Matches(labels.Set(template.Labels)) {
			t.Errorf("%s selects %v, %v, and pods are %v", what, s, err, template.Labels)
		}
	}
	ports := map[string]corev1.Protocol{}
	for _, p := range template.Spec.Containers[0].Ports {
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		ports[p.Name] = p.Protocol
	}
	wantSelects("the set", r.set.Spec.Selector)
	for name, s := range r.services {
		wantSelects(name, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		for _, p := range s.Spec.Ports {
			if of := ports[p.TargetPort.StrVal]; of == "" || p.Protocol != "" && of != p.Protocol {
				t.Errorf("%s: there is no port %s with %s", name, p.TargetPort.StrVal, p.Protocol)
			}
		}
		if s.Namespace != namespace {
			t.Errorf("%s is in %q", name, s.Namespace)
		}
	}
	mesh := r.services[r.set.Spec.ServiceName]
	if mesh == nil || mesh.Spec.ClusterIP != "None" || !mesh.Spec.PublishNotReadyAddresses || len(r.services) != 2 {
		t.Errorf("nodes do not find each other by %+v", mesh)
	}
	if r.budget != nil {
		wantSelects("the budget", r.budget.Spec.Selector)
	}
	if r.policy != nil {
		wantSelects("the network policy", &r.policy.Spec.PodSelector)
		for _, in := range r.policy.Spec.Ingress {
			for _, p := range in.Ports {
				if ports[p.Port.StrVal] != *p.Protocol {
					t.Errorf("the network policy: there is no port %s with %s", p.Port.StrVal, *p.Protocol)
				}
			}
		}
	}
}

// checkPod holds what a pod may do, and how long it is given to end.
func checkPod(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	c := pod.Containers[0]
	volumes := []string{"data"}
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, m := range c.VolumeMounts {
		if !slices.Contains(volumes, m.Name) || m.SubPath != "" {
			t.Errorf("%+v mounts none of %v", m, volumes)
		}
	}
	is, may := pod.SecurityContext, c.SecurityContext
	if !*is.RunAsNonRoot || *is.RunAsUser == 0 || is.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		*may.AllowPrivilegeEscalation || !*may.ReadOnlyRootFilesystem || !slices.Equal(may.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("the pod may do more than it has to: %+v, %+v", is, may)
	}
	if *pod.AutomountServiceAccountToken {
		t.Error("the pod is given a token that it does not need")
	}
}

// checkEnd holds that a pod is given longer to end than its settings let it take.
func checkEnd(t *testing.T, r *rendered) {
	t.Helper()
	var cfg struct {
		Delay   string `json:"drain-delay"`
		Timeout string `json:"drain-timeout"`
	}
	if err := yaml.Unmarshal([]byte(r.config.Data["ropeline.yaml"]), &cfg); err != nil {
		t.Fatal(err)
	}
	delay, err := time.ParseDuration(cfg.Delay)
	if err != nil {
		t.Fatal(err)
	}
	timeout, err := time.ParseDuration(cfg.Timeout)
	if err != nil {
		t.Fatal(err)
	}
	given := time.Duration(*r.set.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if takes := delay + timeout + 10*time.Second; given <= takes {
		t.Errorf("a pod is given %v to end, and may take %v", given, takes)
	}
}
