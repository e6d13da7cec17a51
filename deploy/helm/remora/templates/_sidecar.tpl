{{/*
The named templates of a pod with Remora. In your own chart, with this one as a dependency named remora, the context is
.Subcharts.remora:

    initContainers:
      {{- include "remora.initContainers" .Subcharts.remora | nindent 6 }}
    containers:
      {{- include "remora.containers" .Subcharts.remora | nindent 6 }}
    volumes:
      {{- include "remora.volumes" .Subcharts.remora | nindent 6 }}
*/}}

{{/* remora.sidecar is the one list entry: of initContainers, first, or of containers if sidecar.native is false. */}}
{{- define "remora.sidecar" -}}
- {{ include "remora.container" . | nindent 2 | trim }}
{{- end }}

{{/* remora.initContainers is the native sidecar, or nothing. Put it before all others. */}}
{{- define "remora.initContainers" -}}
{{- if .Values.sidecar.native }}{{ include "remora.sidecar" . }}{{ end }}
{{- end }}

{{/* remora.containers is the classic sidecar, or nothing. */}}
{{- define "remora.containers" -}}
{{- if not .Values.sidecar.native }}{{ include "remora.sidecar" . }}{{ end }}
{{- end }}

{{/* remora.podLabels are the labels by which a pod with Remora is found, and its memory's fate is seen. */}}
{{- define "remora.podLabels" -}}
remora.dev/sidecar: "true"
remora.dev/memory: {{ include "remora.fate" . }}
{{- end }}

{{- define "remora.fate" -}}
{{- if eq .Values.memory.mode "gateway" }}at-the-gateway{{ else if eq (include "remora.volumeName" .) "remora-memory" }}kept{{ else }}gone-with-the-pod{{ end -}}
{{- end }}

{{/* remora.podSecurityContext fits the profile restricted. The group makes volumes and secrets readable for Remora. */}}
{{- define "remora.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "remora.securityContext" -}}
allowPrivilegeEscalation: false
capabilities:
  drop:
    - ALL
privileged: false
readOnlyRootFilesystem: true
runAsGroup: 65532
runAsNonRoot: true
runAsUser: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "remora.probe" -}}
httpGet:
  path: {{ .path }}
  port: health
{{ toYaml .times }}
{{- end }}

{{- define "remora.container" -}}
{{- include "remora.check" . -}}
{{- $shared := eq .Values.shape "shared" -}}
{{- $injected := eq .Values.shape "injection" -}}
name: remora
image: {{ include "remora.image" (dict "image" .Values.image "default" .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- if and .Values.sidecar.native (not $shared) }}
restartPolicy: Always
{{- end }}
env:
{{- include "remora.env" . | nindent 2 }}
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
{{- if and $shared .Values.shared.proxy }}
  - {containerPort: 8787, name: proxy, protocol: TCP}
{{- end }}
{{- if and $shared .Values.shared.gateway }}
  - {containerPort: 8788, name: gateway, protocol: TCP}
{{- end }}
  - {containerPort: {{ .Values.health.port }}, name: health, protocol: TCP}
startupProbe:
  {{- include "remora.probe" (dict "path" "/startupz" "times" .Values.probes.startup) | nindent 2 }}
readinessProbe:
  {{- include "remora.probe" (dict "path" "/readyz" "times" .Values.probes.readiness) | nindent 2 }}
livenessProbe:
  {{- include "remora.probe" (dict "path" "/livez" "times" .Values.probes.liveness) | nindent 2 }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  {{- include "remora.securityContext" . | nindent 2 }}
volumeMounts:
  - {name: {{ include "remora.volumeName" . }}, mountPath: /data}
{{- if not $injected }}
{{- if .Values.config }}
  - {name: remora-config, mountPath: /etc/remora, readOnly: true}
{{- end }}
{{- if include "remora.secrets" . | fromYamlArray }}
  - {name: remora-secrets, mountPath: /run/secrets/remora, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{/* remora.env lists the variables. Those of env and extraEnv come last and are not repeated. */}}
{{- define "remora.env" -}}
{{- $shared := eq .Values.shape "shared" -}}
{{- $injected := eq .Values.shape "injection" -}}
{{- $e := list -}}
{{- if and .Values.config (not $injected) -}}
{{- $e = append $e (dict "name" "REMORA_CONFIG" "value" "/etc/remora/config.json") -}}
{{- end -}}
{{- if $shared -}}
{{- $e = append $e (dict "name" "REMORA_LISTEN" "value" (ternary ":8787" "127.0.0.1:8787" .Values.shared.proxy)) -}}
{{- $e = append $e (dict "name" "REMORA_API_LISTEN" "value" (ternary ":8788" "127.0.0.1:8788" .Values.shared.gateway)) -}}
{{- $e = append $e (dict "name" "REMORA_TIMEOUTS_SHUTDOWN" "value" .Values.shared.shutdown) -}}
{{- else -}}
{{- $e = append $e (dict "name" "REMORA_LISTEN" "value" (printf "127.0.0.1:%d" (int .Values.sidecar.port))) -}}
{{- $e = append $e (dict "name" "REMORA_TIMEOUTS_SHUTDOWN" "value" (.Values.sidecar.shutdown | default (ternary "5s" "25s" .Values.sidecar.native))) -}}
{{- end -}}
{{- $e = append $e (dict "name" "REMORA_HEALTH_LISTEN" "value" (printf ":%d" (int .Values.health.port))) -}}
{{- $e = append $e (dict "name" "REMORA_STORAGE_DIR" "value" "/data/store") -}}
{{- $e = append $e (dict "name" "REMORA_IDENTITY_ANONYMOUS" "value" .Values.identity.anonymous) -}}
{{- $tenant := .Values.identity.tenant | default (ternary "shared" "" (and $shared .Values.shared.gateway)) -}}
{{- if $tenant -}}
{{- $e = append $e (dict "name" "REMORA_IDENTITY_TENANT" "value" $tenant) -}}
{{- end -}}
{{- if .Values.upstream.url -}}
{{- $e = append $e (dict "name" "REMORA_UPSTREAM" "value" .Values.upstream.url) -}}
{{- end -}}
{{- if eq .Values.memory.mode "gateway" -}}
{{- $e = append $e (dict "name" "REMORA_MEMORY_MODE" "value" "gateway") -}}
{{- $e = append $e (dict "name" "REMORA_GATEWAY_BASE_URL" "value" .Values.gateway.baseUrl) -}}
{{- if .Values.gateway.userFromAnnotation -}}
{{- $e = append $e (dict "name" "REMORA_GATEWAY_USER_ID" "valueFrom" (dict "fieldRef" (dict "apiVersion" "v1" "fieldPath" "metadata.annotations['remora.dev/user']"))) -}}
{{- else -}}
{{- $e = append $e (dict "name" "REMORA_GATEWAY_USER_ID" "value" .Values.gateway.userId) -}}
{{- end -}}
{{- end -}}
{{- if $injected -}}
{{- if eq .Values.memory.mode "gateway" -}}
{{- $e = append $e (dict "name" "REMORA_GATEWAY_USER_KEY" "valueFrom" (dict "secretKeyRef" (dict "name" .Values.injection.gatewaySecret "key" "gateway-key"))) -}}
{{- end -}}
{{- $e = append $e (dict "name" "REMORA_STORAGE_KEY_FILE" "value" "/data/store.key") -}}
{{- else -}}
{{- $key := false -}}
{{- range include "remora.secrets" . | fromYamlArray -}}
{{- if eq .variable "REMORA_STORAGE_KEY_FILE" -}}{{- $key = true -}}{{- end -}}
{{- $e = append $e (dict "name" .variable "value" (printf "/run/secrets/remora/%s" .path)) -}}
{{- end -}}
{{- if not $key -}}
{{- $e = append $e (dict "name" "REMORA_STORAGE_KEY_FILE" "value" "/data/store.key") -}}
{{- end -}}
{{- end -}}
{{- $more := list -}}
{{- range $name, $value := .Values.env -}}
{{- $more = append $more (dict "name" $name "value" (toString $value)) -}}
{{- end -}}
{{- $names := dict -}}
{{- range concat $more .Values.extraEnv -}}
{{- if hasKey $names .name -}}{{- fail (printf "extraEnv: %s is set twice" .name) -}}{{- end -}}
{{- $_ := set $names .name true -}}
{{- end -}}
{{- $all := list -}}
{{- range $e -}}{{- if not (hasKey $names .name) -}}{{- $all = append $all . -}}{{- end -}}{{- end -}}
{{- toYaml (concat $all $more .Values.extraEnv) -}}
{{- end }}

{{/* remora.volumes are the pod's volumes of Remora. The shared Remora's memory is a claim template instead. */}}
{{- define "remora.volumes" -}}
{{- $own := include "remora.fullname" . -}}
{{- if ne .Values.shape "shared" }}
- name: {{ include "remora.volumeName" . }}
{{- if eq (include "remora.volumeName" .) "remora-memory" }}
  persistentVolumeClaim:
    claimName: {{ .Values.memory.volume.existingClaim | default $own }}
{{- else }}
  emptyDir:
    sizeLimit: {{ .Values.memory.volume.sizeLimit }}
{{- end }}
{{- end }}
{{- if .Values.config }}
- name: remora-config
  configMap:
    name: {{ $own }}
{{- end }}
{{- with include "remora.secrets" . | fromYamlArray }}
- name: remora-secrets
  projected:
    defaultMode: 0440
    sources:
    {{- range . }}
      - secret:
          name: {{ .secret }}
          items:
            - {key: {{ .key }}, path: {{ .path }}}
    {{- end }}
{{- end }}
{{- end }}

{{- define "remora.claim" -}}
accessModes:
  {{- toYaml .Values.memory.volume.accessModes | nindent 2 }}
{{- with .Values.memory.volume.storageClassName }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.memory.volume.size }}
{{- end }}
