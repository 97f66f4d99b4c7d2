{{/* PodDisruptionBudget of a component: (list root component). */}}
{{- define "recollect.disruptionBudget" -}}
{{- $root := index . 0 }}{{ $component := index . 1 }}
{{- with (include "recollect.kind" $component | get $root.Values).podDisruptionBudget }}
{{- if .enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "recollect.metadata" (list $root $component) | nindent 2 }}
spec:
  maxUnavailable: {{ .maxUnavailable }}
  # A pod that is not ready serves nobody, so it must not delay a drain.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "recollect.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ $component }}
{{- end }}
{{- end }}
{{- end }}
