{{/* Refuses combinations of values, by name. values.schema.json cannot, since it looks at one value at a time. */}}
{{- define "recollect.refusals" -}}
{{- range $name := keys (include "recollect.ownLabels" . | fromYaml) | sortAlpha }}
{{- if hasKey $.Values.commonLabels $name }}
{{- fail (printf "commonLabels must not have %s: the chart selects pods by this label" $name) }}
{{- end }}
{{- end }}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
{{- fail "set serviceAccount.name to the service account of the pods, since serviceAccount.create is false" }}
{{- end }}
{{- if and .Values.redis.user (not .Values.redis.secret) }}
{{- fail "set redis.secret to the Secret with the password of redis.user" }}
{{- end }}
{{- if has "home" .Values.cells.names }}
{{- fail "remove home from cells.names: it is the cell of postgresql, and has workers already" }}
{{- end }}
{{- if and .Values.cells.names (not .Values.cells.secret) }}
{{- fail "set cells.secret to the Secret with RECOLLECT_CELLS, by which processes find the cells of cells.names" }}
{{- end }}
{{- range $cell, $_ := .Values.cells.workers }}
{{- if not (has $cell $.Values.cells.names) }}
{{- fail (printf "cells.workers.%s has no cell of this name in cells.names" $cell) }}
{{- end }}
{{- end }}
{{- if .Values.mail.secret }}
{{- range $process := list "gateway" "worker" }}
{{- if not (dig "RECOLLECT_MAIL_FROM" "" (merge (dict) (get $.Values $process).settings $.Values.settings)) }}
{{- fail (printf "set settings.RECOLLECT_MAIL_FROM to the sender of mail, which mail.secret requires: the %s has none" $process) }}
{{- end }}
{{- end }}
{{- end }}
{{- include "recollect.refusedScaling" (list "gateway.autoscaling" .Values.gateway.autoscaling) }}
{{- range $cell := prepend .Values.cells.names "home" }}
{{- $of := eq $cell "home" | ternary "worker.autoscaling" (printf "cells.workers.%s.autoscaling" $cell) }}
{{- $autoscaling := (fromYaml (include "recollect.workerValues" (list $ $cell))).autoscaling }}
{{- include "recollect.refusedScaling" (list $of $autoscaling) }}
{{- if and $autoscaling.enabled (not (without (values $autoscaling.queues) 0 0.0)) }}
{{- fail (printf "%s.queues has no queue: workers are scaled by at least one" $of) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Refuses scaling whose minimum is above its maximum: (list name autoscaling). */}}
{{- define "recollect.refusedScaling" -}}
{{- $name := index . 0 }}
{{- with index . 1 }}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) }}
{{- fail (printf "%s.minReplicas is %v, more than its maxReplicas, %v" $name (int .minReplicas) (int .maxReplicas)) }}
{{- end }}
{{- end }}
{{- end }}
