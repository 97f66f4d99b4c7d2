{{/* Names, labels and other values that templates share. */}}

{{- define "recollect.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The prefix of all names, short enough for the longest suffix. */}}
{{- define "recollect.fullname" -}}
{{- $name := include "recollect.name" . }}
{{- $joined := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $joined .Values.fullnameOverride | trunc 45 | trimSuffix "-" }}
{{- end }}

{{- define "recollect.selector" -}}
app.kubernetes.io/name: {{ include "recollect.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "recollect.labels" -}}
{{ include "recollect.selector" . }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels that the chart sets itself, and `commonLabels` must not contain. */}}
{{- define "recollect.ownLabels" -}}
app.kubernetes.io/component: ""
app.kubernetes.io/instance: ""
app.kubernetes.io/managed-by: ""
app.kubernetes.io/name: ""
app.kubernetes.io/version: ""
helm.sh/chart: ""
recollect/metrics: ""
{{- end }}

{{/* Metadata of an object: (list root component), or (list root component labels); labels override `commonLabels`. */}}
{{- define "recollect.metadata" -}}
{{- $root := index . 0 }}{{ $component := index . 1 -}}
{{- $labels := fromYaml (include "recollect.labels" $root) }}
{{- if gt (len .) 2 }}{{ $labels = mergeOverwrite $labels (index . 2) }}{{ end -}}
name: {{ include "recollect.fullname" $root }}-{{ $component }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- toYaml (set $labels "app.kubernetes.io/component" $component) | nindent 2 }}
{{- end }}

{{/* The components gateway, and the workers of each cell, as JSON: a list under `names`. */}}
{{- define "recollect.serving" -}}
{{- $names := list "gateway" "worker" }}
{{- range .Values.cells.names }}{{ $names = append $names (printf "worker-%s" .) }}{{ end }}
{{- dict "names" $names | toJson }}
{{- end }}

{{/* Name of the values that a component uses: the workers of every cell use `worker`. */}}
{{- define "recollect.kind" -}}
{{- hasPrefix "worker-" . | ternary "worker" . }}
{{- end }}

{{- define "recollect.serviceAccount" -}}
{{- default (include "recollect.fullname" .) .Values.serviceAccount.name }}
{{- end }}

{{- define "recollect.image" -}}
{{- with .Values.image }}
{{- required "set image.repository to the repository of the image" .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{/* Host of publicUrl without its port, for Ingress and HTTPRoute. */}}
{{- define "recollect.publicHost" -}}
{{- (urlParse (required "set publicUrl to the address by which clients reach the gateway" .Values.publicUrl)).host | splitList ":" | first }}
{{- end }}

{{/* Whether to create the first tenant: not if its key and link are stored. Without a cluster to ask, it is created. */}}
{{- define "recollect.bootstrapWanted" -}}
{{- if .Values.bootstrap.enabled }}
{{- $kept := (lookup "v1" "Secret" .Release.Namespace (include "recollect.bootstrapSecret" .)).data }}
{{- if ne .Values.bootstrap.store "secret" }}
{{- $job := lookup "batch/v1" "Job" .Release.Namespace (printf "%s-bootstrap" (include "recollect.fullname" .)) }}
{{- $kept = dig "status" "succeeded" 0 $job }}
{{- end }}
{{- if not $kept }}true{{ end }}
{{- end }}
{{- end }}

{{- define "recollect.bootstrapSecret" -}}
{{- default (printf "%s-first-tenant" (include "recollect.fullname" .)) .Values.bootstrap.secretName }}
{{- end }}
