{{- define "ropeline.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of all that is made. Pods have a number behind it, and names of nodes 63 characters at most. */}}
{{- define "ropeline.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "ropeline.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "ropeline.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ropeline.selector" -}}
app.kubernetes.io/name: {{ include "ropeline.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "ropeline.labels" -}}
{{ include "ropeline.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "ropeline.secretName" -}}
{{- if and .Values.secret.existing .Values.secret.value -}}
{{- fail "secret.existing and secret.value say the same: give one of them" -}}
{{- else if .Values.secret.existing -}}
{{- .Values.secret.existing -}}
{{- else if .Values.secret.value -}}
{{- printf "%s-secret" (include "ropeline.fullname" .) -}}
{{- else -}}
{{- fail "the nodes need a secret: ropeline keygen --out secret.key; kubectl create secret generic ropeline --from-file=secret.key; then set secret.existing=ropeline" -}}
{{- end -}}
{{- end -}}

{{/* The node's settings: those given, and those that go with the pods. */}}
{{- define "ropeline.config" -}}
{{- $given := .Values.config -}}
{{- if not (or $given.origin $given.origins (index $given "verdict-listen")) -}}
{{- fail "config.origin is missing: the site to protect, such as http://shop.default.svc:3000" -}}
{{- end -}}
{{- $own := dict
  "site" .Values.site
  "listen" ":8080"
  "admin" "127.0.0.1:9080"
  "mesh" (printf ":%d" (int .Values.mesh.port))
  "join" (prepend .Values.mesh.join (printf "%s-mesh.%s.svc:%d" (include "ropeline.fullname" .) .Release.Namespace (int .Values.mesh.port)))
  "secret-file" (printf "/etc/ropeline-secret/%s" .Values.secret.key)
  "drain-delay" (printf "%ds" (int .Values.drainDelay))
  "drain-timeout" (printf "%ds" (int .Values.drainTimeout)) -}}
{{- $names := .Values.bootstrapNodes -}}
{{- if not $names -}}
{{- range $i := until (min 3 (int .Values.replicas) | int) -}}
{{- $names = append $names (printf "%s-%d" (include "ropeline.fullname" $) $i) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $own "bootstrap-nodes" $names -}}
{{- toYaml (mergeOverwrite (deepCopy $given) $own) -}}
{{- end -}}
