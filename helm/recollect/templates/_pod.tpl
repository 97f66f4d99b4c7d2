{{/* Fields of every pod: the restricted Pod Security Standard, and no more rights than needed. */}}

{{/* The first fields of a pod's spec: (list root serviceAccountName). */}}
{{- define "recollect.pod" -}}
{{- $root := index . 0 -}}
serviceAccountName: {{ index . 1 }}
automountServiceAccountToken: false
# Service links would set variables such as RECOLLECT_PORT, which are settings.
enableServiceLinks: false
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ $root.Values.pod.userId }}
  runAsGroup: {{ $root.Values.pod.userId }}
  fsGroup: {{ $root.Values.pod.userId }}
  seccompProfile:
    type: RuntimeDefault
{{- with $root.Values.pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Fields of every container. */}}
{{- define "recollect.container" -}}
image: {{ include "recollect.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- define "recollect.mounts" -}}
- name: tmp
  mountPath: /tmp
{{- range $server := list "postgresql" "redis" }}
{{- $ca := (get $.Values $server).ca }}
{{- if or $ca.secret $ca.configMap }}
- name: {{ $server }}-ca
  mountPath: /etc/recollect/{{ $server }}
  readOnly: true
{{- end }}
{{- end }}
{{- end }}

{{- define "recollect.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: {{ .Values.pod.tmpSize }}
{{- range $server := list "postgresql" "redis" }}
{{- $ca := (get $.Values $server).ca }}
{{- if $ca.secret }}
- name: {{ $server }}-ca
  secret:
    secretName: {{ $ca.secret }}
    items: [{key: {{ $ca.key | quote }}, path: ca.crt}]
{{- else if $ca.configMap }}
- name: {{ $server }}-ca
  configMap:
    name: {{ $ca.configMap }}
    items: [{key: {{ $ca.key | quote }}, path: ca.crt}]
{{- end }}
{{- end }}
{{- end }}

{{/* Spread of a component's pods: (list root component). */}}
{{- define "recollect.spread" -}}
{{- $root := index . 0 }}{{ $component := index . 1 }}
{{- with (include "recollect.kind" $component | get $root.Values) }}
{{- $zones := .topologySpread.whenUnsatisfiable }}
{{- $nodes := default $zones .topologySpread.whenNodesUnsatisfiable }}
{{- if .topologySpread.enabled }}
topologySpreadConstraints:
{{- range list (list "topology.kubernetes.io/zone" $zones) (list "kubernetes.io/hostname" $nodes) }}
  - maxSkew: 1
    topologyKey: {{ index . 0 }}
    whenUnsatisfiable: {{ index . 1 }}
    # A pod cannot be spread to nodes whose taints it does not tolerate.
    nodeTaintsPolicy: Honor
    labelSelector:
      matchLabels:
        {{- include "recollect.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $component }}
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
