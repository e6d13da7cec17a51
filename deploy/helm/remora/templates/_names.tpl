{{- define "remora.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default "remora" .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "remora.selectorLabels" -}}
app.kubernetes.io/name: {{ default "remora" .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "remora.labels" -}}
{{ include "remora.selectorLabels" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* remora.image writes an image of values: {repository, tag, digest}; the tag defaults to .default. */}}
{{- define "remora.image" -}}
{{- $tag := .image.tag | default .default -}}
{{- if .image.digest -}}
{{- printf "%s:%s@%s" .image.repository $tag .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository $tag -}}
{{- end -}}
{{- end }}

{{/* remora.volumeName says what becomes of the memory when the pod is deleted. */}}
{{- define "remora.volumeName" -}}
{{- if or (eq .Values.shape "shared") (and (eq .Values.memory.volume.kind "persistentVolumeClaim") (ne .Values.shape "injection")) -}}
remora-memory
{{- else -}}
remora-gone-with-the-pod
{{- end -}}
{{- end }}

{{/* remora.secrets lists the secrets that are mounted, as YAML: name, key, path and variable of each. */}}
{{- define "remora.secrets" -}}
{{- $own := include "remora.fullname" . -}}
{{- $variables := dict "storageKey" "REMORA_STORAGE_KEY_FILE" "adminToken" "REMORA_API_TOKEN_FILE" "upstream" "REMORA_UPSTREAM_FILE" "gatewayKey" "REMORA_GATEWAY_USER_KEY_FILE" -}}
{{- $paths := dict "storageKey" "storage-key" "adminToken" "admin-token" "upstream" "upstream" "gatewayKey" "gateway-key" -}}
{{- range $name := list "storageKey" "adminToken" "upstream" "gatewayKey" }}
{{- $secret := index $.Values.secrets $name }}
{{- if and (or $secret.existingSecret $secret.value) (or (ne $name "gatewayKey") (eq $.Values.memory.mode "gateway")) }}
- secret: {{ $secret.existingSecret | default $own }}
  key: {{ if $secret.existingSecret }}{{ $secret.key }}{{ else }}{{ get $paths $name }}{{ end }}
  path: {{ get $paths $name }}
  variable: {{ get $variables $name }}
{{- end }}
{{- end }}
{{- end }}

{{/* remora.check refuses values that the schema can't, because they depend on each other. */}}
{{- define "remora.check" -}}
{{- $s := .Values.secrets -}}
{{- $kept := eq (include "remora.volumeName" .) "remora-memory" -}}
{{- if and $kept (not (or $s.storageKey.existingSecret $s.storageKey.value)) -}}
{{- fail "secrets.storageKey: memory that is kept needs a key from a Secret: openssl rand -hex 32 (docs/kubernetes.md#keys)" -}}
{{- end -}}
{{- if and (eq .Values.shape "shared") (not (or .Values.shared.gateway .Values.shared.proxy)) -}}
{{- fail "shared: serves nothing without gateway and without proxy" -}}
{{- end -}}
{{- $proxy := ternary 8787 (int .Values.sidecar.port) (eq .Values.shape "shared") -}}
{{- if has (int .Values.health.port) (list $proxy 8788) -}}
{{- fail (printf "health.port: %d is the port of the proxy or of the control plane" (int .Values.health.port)) -}}
{{- end -}}
{{- if eq .Values.memory.mode "gateway" -}}
{{- if not .Values.gateway.baseUrl -}}{{- fail "gateway.baseUrl: needed with memory.mode gateway" -}}{{- end -}}
{{- if not (or .Values.gateway.userId .Values.gateway.userFromAnnotation) -}}{{- fail "gateway.userId or gateway.userFromAnnotation: needed with memory.mode gateway" -}}{{- end -}}
{{- if and (ne .Values.shape "injection") (not (or $s.gatewayKey.existingSecret $s.gatewayKey.value)) -}}{{- fail "secrets.gatewayKey: needed with memory.mode gateway" -}}{{- end -}}
{{- else if or .Values.gateway.baseUrl .Values.gateway.userId .Values.gateway.userFromAnnotation -}}
{{- fail "gateway: is for memory.mode gateway" -}}
{{- end -}}
{{- end }}
