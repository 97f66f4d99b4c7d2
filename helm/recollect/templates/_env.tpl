{{/* The environment of processes. docs/settings.md lists every variable that begins with RECOLLECT_. */}}

{{/* A variable from a Secret: (list name secret key). */}}
{{- define "recollect.fromSecret" -}}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef:
      name: {{ index . 1 }}
      key: {{ index . 2 }}
{{- end }}

{{/* Settings as variables, lists as JSON: (list root map...). Later maps take precedence over earlier ones. */}}
{{- define "recollect.settings" -}}
{{- $root := first . }}
{{- $merged := dict "RECOLLECT_LOG_FORMAT" "json" }}
{{- range rest . }}{{ $merged = mergeOverwrite $merged (deepCopy .) }}{{ end }}
{{- if and $root.Values.cells.secret (eq (toString (get $merged "RECOLLECT_DATABASE_POOL_SIZE")) "1") }}
{{- fail "cells need RECOLLECT_DATABASE_POOL_SIZE of 2 or more in settings: with one connection no process starts" }}
{{- end }}
{{- range $name, $value := $merged }}
- name: {{ $name }}
  value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}
{{- end }}
{{- end }}

{{- define "recollect.postgresqlOptions" -}}
{{- $mode := .Values.postgresql.sslmode -}}
?sslmode={{ $mode }}
{{- if hasPrefix "verify-" $mode }}&sslrootcert={{ include "recollect.caFile" (list . "postgresql") }}{{ end }}
{{- end }}

{{/* Path of the certificate of the authority that signed a server's certificate: (list root server). */}}
{{- define "recollect.caFile" -}}
{{- $ca := (get (index . 0).Values (index . 1)).ca }}
{{- if or $ca.secret $ca.configMap -}}
/etc/recollect/{{ index . 1 }}/ca.crt
{{- else -}}
{{ $ca.file }}
{{- end }}
{{- end }}

{{/* The address of PostgreSQL for a login: (list root login variable). */}}
{{- define "recollect.postgresql" -}}
{{- $root := index . 0 }}{{ $login := index . 1 }}{{ $variable := index . 2 }}
{{- $postgresql := $root.Values.postgresql }}
{{- $of := get $postgresql $login }}
{{- $secret := required (printf "set postgresql.%s.secret to the Secret of that login" $login) $of.secret }}
{{- if $of.urlKey }}
{{- include "recollect.fromSecret" (list $variable $secret $of.urlKey) }}
{{- else }}
{{- $host := $postgresql.host }}{{ $port := $postgresql.port }}
{{- if and (eq $login "app") $postgresql.pooler.enabled }}
{{- $host = required "set postgresql.pooler.host to the host of the pooler" $postgresql.pooler.host }}{{ $port = $postgresql.pooler.port }}
{{- end }}
{{- $host = required "set postgresql.host to the host of PostgreSQL" $host }}
{{- if and (hasPrefix "verify-" $postgresql.sslmode) (not (include "recollect.caFile" (list $root "postgresql"))) }}
{{- fail (printf "postgresql.sslmode %s needs the authority of the server's certificate: postgresql.ca" $postgresql.sslmode) }}
{{- end }}
{{- $password := printf "POSTGRESQL_%s_PASSWORD" (upper $login) }}
{{- include "recollect.fromSecret" (list $password $secret $of.passwordKey) }}
- name: {{ $variable }}
  value: {{ printf "postgresql://%s:$(%s)@%s:%v/%s%s" $of.user $password $host $port $postgresql.database (include "recollect.postgresqlOptions" $root) | quote }}
{{- end }}
{{- end }}

{{/* The address of the replica from which gateways and workers read, if there is one. */}}
{{- define "recollect.replica" -}}
{{- $app := .Values.postgresql.app }}
{{- with .Values.postgresql.replica }}
{{- if .urlKey }}
{{- include "recollect.fromSecret" (list "RECOLLECT_REPLICA_DATABASE_URL" $app.secret .urlKey) }}
{{- else if .host }}
{{- if $app.urlKey }}{{ fail "postgresql.replica.urlKey is needed where postgresql.app.urlKey is set" }}{{ end -}}
- name: RECOLLECT_REPLICA_DATABASE_URL
  value: {{ printf "postgresql://%s:$(POSTGRESQL_APP_PASSWORD)@%s:%v/%s%s" $app.user .host .port $.Values.postgresql.database (include "recollect.postgresqlOptions" $) | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The address of Valkey or Redis. */}}
{{- define "recollect.redis" -}}
{{- with .Values.redis }}
{{- if .urlKey }}
{{- include "recollect.fromSecret" (list "RECOLLECT_REDIS_URL" (required "set redis.secret to the Secret with the key redis.urlKey" .secret) .urlKey) }}
{{- else }}
{{- if .secret }}
{{- include "recollect.fromSecret" (list "REDIS_PASSWORD" .secret .passwordKey) }}
{{ end -}}
{{- $login := "" }}
{{- if .secret }}{{ $login = printf "%s:$(REDIS_PASSWORD)@" .user }}{{ end }}
{{- $ca := include "recollect.caFile" (list $ "redis") }}
{{- $options := "" }}
{{- if and .tls $ca }}{{ $options = printf "?ssl_ca_certs=%s" $ca }}{{ end -}}
- name: RECOLLECT_REDIS_URL
  value: {{ printf "%s://%s%s:%v/%v%s" (ternary "rediss" "redis" .tls) $login (required "set redis.host to the host of Valkey or Redis" .host) .port .database $options | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Variables of all processes. */}}
{{- define "recollect.commonEnv" -}}
# The root file system is read only.
- name: HOME
  value: /tmp
- name: RECOLLECT_PUBLIC_URL
  value: {{ required "set publicUrl to the address by which clients reach the gateway" .Values.publicUrl | quote }}
{{ include "recollect.fromSecret" (list "RECOLLECT_KEY_SECRET" (required "set keySecret.secret to the Secret with RECOLLECT_KEY_SECRET" .Values.keySecret.secret) .Values.keySecret.key) }}
{{- with .Values.keySecret.acceptedKey }}
{{ include "recollect.fromSecret" (list "RECOLLECT_ACCEPTED_KEY_SECRETS" $.Values.keySecret.secret .) }}
{{- end }}
{{- end }}

{{/* Further cells, if any, with the logins for one kind of process: (list root key). */}}
{{- define "recollect.cells" -}}
{{- with (index . 0).Values.cells.secret }}
{{- include "recollect.fromSecret" (list "RECOLLECT_CELLS" . (index $ 1)) }}
{{- end }}
{{- end }}

{{/* Variables of gateways and workers. */}}
{{- define "recollect.servingEnv" -}}
{{ include "recollect.commonEnv" . }}
{{ include "recollect.postgresql" (list . "app" "RECOLLECT_DATABASE_URL") }}
{{ include "recollect.redis" . }}
{{- if .Values.postgresql.pooler.enabled }}
- name: RECOLLECT_DATABASE_POOLED
  value: "true"
{{- end }}
{{- with .Values.mail.secret }}
{{ include "recollect.fromSecret" (list "RECOLLECT_MAIL_URL" . $.Values.mail.key) }}
{{- end }}
{{- with .Values.embedding.secret }}
{{ include "recollect.fromSecret" (list "RECOLLECT_EMBEDDING_API_KEY" . $.Values.embedding.key) }}
{{- end }}
{{- with .Values.distilling.secret }}
{{ include "recollect.fromSecret" (list "RECOLLECT_DISTIL_API_KEY" . $.Values.distilling.key) }}
{{- end }}
{{- if .Values.metrics.enabled }}
- name: RECOLLECT_METRICS_HOST
  value: {{ .Values.pod.bindAddress | quote }}
- name: RECOLLECT_METRICS_PORT
  value: "9464"
{{- end }}
{{- end }}

{{/* Variables of a Job of the owner: the owner's login only. */}}
{{- define "recollect.ownerEnv" -}}
{{ include "recollect.commonEnv" . }}
{{ include "recollect.postgresql" (list . "owner" "RECOLLECT_OWNER_DATABASE_URL") }}
{{ include "recollect.cells" (list . .Values.cells.ownerKey) }}
{{- end }}
