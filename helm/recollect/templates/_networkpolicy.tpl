{{/* Rules for egress and ingress of pods. An empty list of peers allows everybody; a missing rule allows nobody. */}}

{{- define "recollect.podSelector" -}}
matchLabels:
  {{- include "recollect.selector" (index . 0) | nindent 2 }}
  app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* One egress rule to ports of peers: (list peers ports). */}}
{{- define "recollect.egressTo" -}}
{{- $peers := index . 0 -}}
- ports:
    {{- range index . 1 }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- with $peers }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "recollect.egressDns" -}}
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
  to:
    {{- toYaml .Values.networkPolicy.dnsTo | nindent 4 }}
{{- end }}

{{- define "recollect.egressPostgresql" -}}
{{- $ports := list .Values.postgresql.port }}
{{- if .Values.postgresql.pooler.enabled }}{{ $ports = append $ports .Values.postgresql.pooler.port | uniq }}{{ end }}
{{- if or .Values.postgresql.replica.host .Values.postgresql.replica.urlKey }}{{ $ports = append $ports .Values.postgresql.replica.port | uniq }}{{ end }}
{{- include "recollect.egressTo" (list .Values.networkPolicy.postgresqlTo (concat $ports .Values.cells.ports | uniq)) }}
{{- end }}

{{- define "recollect.egressRedis" -}}
{{- include "recollect.egressTo" (list .Values.networkPolicy.redisTo (list .Values.redis.port)) }}
{{- end }}

{{/* Egress to the collector, if a component's settings name one: (list root settings). */}}
{{- define "recollect.egressOtlp" -}}
{{- $root := index . 0 }}
{{- if or (get $root.Values.settings "RECOLLECT_OTLP_ENDPOINT") (get (index . 1) "RECOLLECT_OTLP_ENDPOINT") }}
{{- include "recollect.egressTo" (list $root.Values.networkPolicy.otlp.to (list $root.Values.networkPolicy.otlp.port)) }}
{{- end }}
{{- end }}

{{- define "recollect.egressOutbound" -}}
{{- with .Values.networkPolicy.outbound }}
{{- if .enabled }}
- ports:
    {{- range .ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  to:
    - ipBlock:
        cidr: 0.0.0.0/0
        except:
          {{- toYaml .except | nindent 10 }}
    - ipBlock:
        cidr: ::/0
        except:
          {{- toYaml .exceptIPv6 | nindent 10 }}
{{- end }}
{{- end }}
{{- end }}

{{/* Ingress from peers to a named port: (list peers port). */}}
{{- define "recollect.ingressFrom" -}}
- ports:
    - {protocol: TCP, port: {{ index . 1 }}}
  {{- with index . 0 }}
  from:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
