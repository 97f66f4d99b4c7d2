{{/* Refuses combinations of values, by name. values.schema.json cannot, since it looks at one value at a time. */}}
{{- define "recollect.refusals" -}}
{{- range $name := keys (include "recollect.ownLabels" . | fromYaml) | sortAlpha }}
{{- if hasKey $.Values.commonLabels $name }}
{{- fail (printf "commonLabels has %s, a label of the chart, by which pods are found: take another name" $name) }}
{{- end }}
{{- end }}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
{{- fail "serviceAccount.name names the account of yours that pods have where serviceAccount.create is false" }}
{{- end }}
{{- if and .Values.redis.user (not .Values.redis.secret) }}
{{- fail "redis.secret holds the password of redis.user" }}
{{- end }}
{{- if has "home" .Values.cells.names }}
{{- fail "cells.names does not name home, which is the cell of postgresql: it has workers as it is" }}
{{- end }}
{{- if and .Values.cells.names (not .Values.cells.secret) }}
{{- fail "cells.secret holds RECOLLECT_CELLS, without which no process knows what cells.names names" }}
{{- end }}
{{- range $cell, $_ := .Values.cells.workers }}
{{- if not (has $cell $.Values.cells.names) }}
{{- fail (printf "cells.workers.%s is of no cell of cells.names" $cell) }}
{{- end }}
{{- end }}
{{- if .Values.mail.secret }}
{{- range $process := list "gateway" "worker" }}
{{- if not (dig "RECOLLECT_MAIL_FROM" "" (merge (dict) (get $.Values $process).settings $.Values.settings)) }}
{{- fail (printf "settings.RECOLLECT_MAIL_FROM says whom mail is from, which mail.secret needs: the %s has none" $process) }}
{{- end }}
{{- end }}
{{- end }}
{{- include "recollect.refusedScaling" (list "gateway.autoscaling" .Values.gateway.autoscaling) }}
{{- range $cell := prepend .Values.cells.names "home" }}
{{- $of := eq $cell "home" | ternary "worker.autoscaling" (printf "cells.workers.%s.autoscaling" $cell) }}
{{- $autoscaling := (fromYaml (include "recollect.workerValues" (list $ $cell))).autoscaling }}
{{- include "recollect.refusedScaling" (list $of $autoscaling) }}
{{- if and $autoscaling.enabled (not (without (values $autoscaling.queues) 0 0.0)) }}
{{- fail (printf "%s.queues leaves all queues out: workers are scaled by one of them at least" $of) }}
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
