{{/*
remora.cel writes a value as a literal of CEL. dyn() lets a map hold values of different types. It is what makes the
injected container the same as the one of remora.container.
*/}}
{{- define "remora.cel" -}}
{{- if kindIs "map" . -}}
{
{{- $map := . -}}
{{- range $i, $key := keys $map | sortAlpha -}}
{{- if $i }}, {{ end -}}
{{ toJson $key }}: dyn({{ include "remora.cel" (get $map $key) }})
{{- end -}}
}
{{- else if kindIs "slice" . -}}
[
{{- range $i, $item := . -}}
{{- if $i }}, {{ end -}}
dyn({{ include "remora.cel" $item }})
{{- end -}}
]
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end }}
